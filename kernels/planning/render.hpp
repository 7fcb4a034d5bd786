#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Macros of a kernel source, in the order of their definition.
using Defines = std::vector<std::pair<std::string, std::string>>;

/// Returns the name of a macro that has the value of a dimension or attribute: it in capitals.
std::string define_name(std::string_view name);

/// Returns the complete text of an embedded kernel source. The macros are defined at the top (GLSL:
/// directly after #version). Every `#include "path"` line (relative to kernels/templates) is
/// replaced by that file: each time, or for the compiler once if the file has a `#pragma once`
/// line. Throws Error for a file that is not embedded.
std::string render(std::string_view path, const Defines& defines);

/// Returns the text of a file of kernels/templates. Throws Error if there is none.
using FindTemplate = std::function<std::string_view(std::string_view path)>;

/// Does the same with other texts of the files than the embedded ones.
std::string render(std::string_view path, const Defines& defines, const FindTemplate& find);

}  // namespace greta::kernels
