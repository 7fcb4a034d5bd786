#pragma once

#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns GRETA's version as recorded with every result, e.g. "0.1.0".
std::string_view version();

}  // namespace greta::device
