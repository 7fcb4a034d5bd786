#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/device/compile/embedded_file.hpp"

namespace greta::kernels {

/// Returns all *.comp, *.glsl and *.hip files below kernels/templates as of build time.
const std::vector<EmbeddedFile>& built_in_files();

/// Returns the files that kernels are rendered from: the built-in files, except those that
/// use_templates() has replaced.
const std::vector<EmbeddedFile>& embedded_files();

/// Replaces built-in files by the files of `folder` with the same path, e.g. "gemm/tiled.comp".
/// Kernels can then be developed without a rebuild. Must be called before any template is used.
/// Throws Error if the folder can't be read or contains a source that is not built in.
void use_templates(const std::filesystem::path& folder);
/// Returns the folder of the last use_templates() call, or an empty path.
const std::filesystem::path& template_folder();

/// Returns the text of an embedded file. Throws Error if there is no such file.
std::string_view embedded_file(std::string_view path);

/// Removes the first line from `text` and returns it without its line break.
std::string_view take_line(std::string_view& text);
/// Returns the path in an #include "..." line, or an empty string for other lines.
std::string_view included_file(std::string_view line);

}  // namespace greta::kernels
