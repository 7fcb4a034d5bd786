#pragma once

#include <string>

#include "tuner/bench/preset.hpp"

namespace greta::tuner::cli {

/// The preset of a file, or of a name: an installed one, or one of a source tree that is the
/// current folder. Throws CommandError.
Preset load_preset(const std::string& wanted);

}  // namespace greta::tuner::cli
