#pragma once

#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// A text file that was built into a library.
struct EmbeddedFile {
  std::string_view path;  ///< relative to the embedded folder, e.g. "gemm/tiled.comp"
  std::string_view text;
};

}  // namespace greta::device
