#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/api.hpp"
#include "runtime/device/layers.hpp"
#include "runtime/device/library_call.hpp"

namespace greta::device {

/// A kernel's rendered text and everything else that affects its binary.
struct KernelSource {
  std::string name;  ///< for messages: "gemm/tiled"
  Language language = Language::glsl;
  std::string text;  ///< complete: includes are expanded, parameters are #defines
  /// The function. In HIP also the instantiation of a template: "scale<float, 4>".
  std::string entry = "main";
  std::vector<std::string> options;          ///< compiler options
  std::uint32_t required_subgroup_size = 0;  ///< 0: the driver's choice
  std::uint32_t argument_bytes = 0;          ///< size of the argument block (push constants)
  /// Offsets of the arguments in that block, if there are tensor maps among them: the CUDA driver
  /// places these by a rule of its own, and gets such arguments one by one.
  std::vector<std::uint32_t> argument_offsets{};
  std::array<std::uint32_t, 3> block{1, 1, 1};  ///< workgroup size, as declared in the text
  /// The size of `extern __shared__` memory (HIP), in addition to what the text declares. It is
  /// passed at launch, so it does not affect the binary.
  std::uint32_t dynamic_shared_bytes = 0;
  /// Variables in constant memory (HIP's __constant__) that are written before launches
  /// (Stream::write_constant).
  std::vector<std::string> constants{};
  /// Whether the kernel itself waits for earlier launches before it uses what they write, so that
  /// it may begin before they end (LaunchOrder::overlapping).
  bool awaits_launches = false;
  /// A call of a vendor's library (library_of) instead of a text. The argument block is the call's
  /// (MatrixProductArguments, AttentionArguments); the grid has no meaning.
  std::optional<LibraryCall> call{};

  /// Returns a hash of language, text, entry, subgroup size, argument bytes, options, call, and
  /// the given compiler and architecture.
  std::string content_key(std::string_view compiler, std::string_view architecture) const;
};

}  // namespace greta::device
