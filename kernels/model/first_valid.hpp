#pragma once

#include <optional>

#include "kernels/model/space.hpp"

namespace greta::kernels {

/// Returns the first valid configuration of a variant, which is Space::at(0) of it alone, or
/// std::nullopt if there is none. Takes a fraction of the time of a Space, which has to know all.
std::optional<Config> first_valid(const Alternative& alternative);

}  // namespace greta::kernels
