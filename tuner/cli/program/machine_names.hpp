#pragma once

#include <string_view>

#include "tuner/bundle/private_names.hpp"

namespace greta::tuner::cli {

/// Returns the names of this machine and its user. Words of GRETA's own and of `text_of_output`
/// count as common ones.
PrivateNames names_of_machine(std::string_view text_of_output = {});

}  // namespace greta::tuner::cli
