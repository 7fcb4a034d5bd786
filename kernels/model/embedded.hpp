#pragma once

#include <string_view>
#include <vector>

#include "runtime/device/embedded_file.hpp"

namespace greta {

/// All files *.comp, *.glsl and *.hip below kernels/templates.
const std::vector<EmbeddedFile>& embedded_files();

/// The text of one of them; throws Error when there is none.
std::string_view embedded_file(std::string_view path);

}  // namespace greta
