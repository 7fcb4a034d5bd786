#pragma once

#include <string_view>
#include <vector>

#include "runtime/device/embedded_file.hpp"

namespace greta {

/// All files *.comp, *.glsl and *.hip below kernels/templates.
const std::vector<EmbeddedFile>& embedded_files();

/// The text of one of them; throws Error when there is none.
std::string_view embedded_file(std::string_view path);

/// The next line of a text, without its end, which is taken off the text.
std::string_view take_line(std::string_view& text);
/// The file that a line includes; empty where it does no such thing.
std::string_view included_file(std::string_view line);

}  // namespace greta
