#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// A kernel's rendered text and everything else that reaches its binary.
struct KernelSource {
  std::string name;      ///< for people: "gemm/tiled"
  std::string language;  ///< "glsl" or "hip"
  std::string text;      ///< complete: parameters are #defines in it, includes are expanded
  std::string entry = "main";
  std::vector<std::string> options;             ///< compiler options
  std::uint32_t required_subgroup_size = 0;     ///< 0: the driver's choice
  std::uint32_t argument_bytes = 0;             ///< size of the argument block (push constants)
  std::array<std::uint32_t, 3> block{1, 1, 1};  ///< workgroup size, as the text declares it
  /// Shared memory of `extern __shared__` (HIP), besides what the text declares. Given at launches,
  /// so it does not reach the binary.
  std::uint32_t dynamic_shared_bytes = 0;

  /// Hash of text, entry, options, subgroup size, and the compiler and architecture given.
  std::string content_key(std::string_view compiler, std::string_view architecture) const;
};

}  // namespace greta::device
