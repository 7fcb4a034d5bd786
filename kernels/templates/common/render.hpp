#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Parameters of a kernel's text, in the order in which they are defined.
using Defines = std::vector<std::pair<std::string, std::string>>;

/// The complete text of an embedded kernel source: the parameters as #define lines in front (GLSL:
/// right after #version), and every `#include "path"` line (below kernels/templates) replaced by
/// that file, as often as it appears, or once where the file has a line `#pragma once`. Throws
/// Error for a file that is not embedded.
std::string render(std::string_view path, const Defines& defines);

}  // namespace greta::kernels
