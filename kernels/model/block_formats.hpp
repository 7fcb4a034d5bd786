#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Formats of quantised weights: the elements of a row are grouped into blocks, each of which
/// stores small integers together with the scales that they share. They are the formats of GGUF
/// files; scales are little-endian f16. A block's bytes, in order:
///
/// - q8_0: 32 elements in 34 bytes. scale d; 32 x int8 q. Element i is d * q[i].
/// - q4_0: 32 elements in 18 bytes. scale d; 16 bytes, whose low halves are q[0] to q[15] and whose
///   high halves are q[16] to q[31]. Element i is d * (q[i] - 8).
/// - q4_k: 256 elements in 144 bytes. scales d and e; 12 bytes with a 6-bit factor s[g] and a 6-bit
///   minimum m[g] for each of 8 groups of 32 elements; 128 bytes of q. Bytes 32p to 32p+31 have
///   group 2p in their low halves and group 2p+1 in their high halves. Element i of group g is
///   d * s[g] * q[i] - e * m[g]. Of the 12 bytes b, the low 6 bits of b[g] are s[g] and those of
///   b[g+4] are m[g] for g below 4. For g from 4 on, b[g+4] has the low 4 bits of s[g] and, above
///   them, those of m[g]; their high 2 bits are the top bits of b[g-4] and of b[g].
/// - q6_k: 256 elements in 210 bytes. 128 bytes with the low 4 bits of q; 64 bytes with the high 2
///   bits; 16 x int8 factor s[g], one for each group of 16; scale d. Each half of 128 elements has
///   64 bytes of low bits: byte j has elements j and j + 64. It has 32 bytes of high bits: byte j
///   has elements j, j + 32, j + 64 and j + 96, from its low bits upwards. Element i is
///   d * s[i / 16] * (q[i] - 32).
///
/// Source of the formats: ggml, ggml-common.h and gguf-py.
enum class BlockFormat : std::uint8_t { q8_0, q4_0, q4_k, q6_k };

struct BlockFormatTraits {
  BlockFormat format;
  std::string_view name;
  std::size_t elements;  ///< of a block
  std::size_t bytes;     ///< of a block
};

/// All formats, in the order of BlockFormat.
inline constexpr std::array block_format_table{
    BlockFormatTraits{BlockFormat::q8_0, "q8_0", 32, 34},
    BlockFormatTraits{BlockFormat::q4_0, "q4_0", 32, 18},
    BlockFormatTraits{BlockFormat::q4_k, "q4_k", 256, 144},
    BlockFormatTraits{BlockFormat::q6_k, "q6_k", 256, 210},
};

constexpr const BlockFormatTraits& block_traits(BlockFormat format) {
  return block_format_table[static_cast<std::size_t>(format)];
}
constexpr std::string_view to_string(BlockFormat format) {
  return block_traits(format).name;
}
std::optional<BlockFormat> block_format_from_string(std::string_view name);

/// Writes the elements of `blocks` consecutive blocks to `values`, as exact real numbers: every
/// product and difference of a format's formula is exact in FP64. A scale that is infinite or NaN
/// gives such elements. `data` needs no alignment.
void decode_blocks(BlockFormat format, const std::byte* data, std::size_t blocks, double* values);

}  // namespace greta::kernels
