#pragma once

#include <string_view>
#include <vector>

namespace greta {

/// A kernel source that was built into the library.
struct EmbeddedFile {
  std::string_view path;  ///< below kernels/templates, e.g. "gemm/tiled.comp"
  std::string_view text;
};

/// All files *.comp, *.glsl and *.hip below kernels/templates.
const std::vector<EmbeddedFile>& embedded_files();

/// The text of one of them; throws Error when there is none.
std::string_view embedded_file(std::string_view path);

}  // namespace greta
