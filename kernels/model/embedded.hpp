#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/device/embedded_file.hpp"

namespace greta::kernels {

/// All files *.comp, *.glsl and *.hip below kernels/templates, as they were when it was built.
const std::vector<EmbeddedFile>& built_in_files();

/// Those that kernels are made of: the built-in ones, or what use_templates() put in their place.
const std::vector<EmbeddedFile>& embedded_files();

/// Files of `folder` replace the built-in ones of the same path, e.g. "gemm/tiled.comp"; the others
/// stay. For work on kernels without a build. Call it before any template is used. Throws Error
/// where the folder can't be read, or has a source that was not built in.
void use_templates(const std::filesystem::path& folder);
/// The folder that use_templates() took last; empty: none.
const std::filesystem::path& template_folder();

/// The text of one of them; throws Error when there is none.
std::string_view embedded_file(std::string_view path);

/// The next line of a text, without its end, which is taken off the text.
std::string_view take_line(std::string_view& text);
/// The file that a line includes; empty where it does no such thing.
std::string_view included_file(std::string_view line);

}  // namespace greta::kernels
