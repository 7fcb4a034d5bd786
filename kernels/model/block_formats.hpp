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
/// files; scales are little-endian f16.
///
/// Kernels multiply by weights in the first four (WeightFormat). A block's bytes, in order:
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
/// The weights of these are exactly those of a block of the first four (same_weights()):
///
/// - q5_0: 32 elements in 22 bytes. scale d; 4 bytes, whose bit i is the high bit of q[i]; 16 bytes
///   with the low 4 bits, as of q4_0. Element i is d * (q[i] - 16). The same as q8_0.
/// - iq4_nl: the bytes of q4_0. Element i is d * t[q[i]], where t are 16 integers of 8 bits. The
///   same as q8_0.
/// - q3_k: 256 elements in 110 bytes. 32 bytes with the high bit of q: bit g of byte j is that of
///   element 32g + j; 64 bytes with the low 2 bits, 32 for each half of 128 elements, whose byte j
///   has elements j, j + 32, j + 64 and j + 96, from its low bits upwards; 12 bytes with a 6-bit
///   factor s[g] for each of 16 groups of 16 elements; scale d. Element i is
///   d * (s[i / 16] - 32) * (q[i] - 4). Of the 12 bytes b, the low 4 bits of s[g] are in b[g % 8],
///   in its low half for g below 8, and the high 2 bits in b[8 + g % 4] from bit g / 4 * 2 on. The
///   same as q6_k.
///
/// - tq1_0: 256 elements in 54 bytes. 52 bytes of digits 0, 1 or 2 to the base of 3; scale d. Digit
///   i of byte b is 3 (b * 3^i mod 256) / 256, rounded down. Digit i of the first 32 bytes are
///   elements 32i and up, of the next 16 bytes elements 160 + 16i and up, and of the last 4, which
///   have four digits, elements 240 + 4i and up. An element is d * (digit - 1). The same as q4_k.
/// - tq2_0: 256 elements in 66 bytes. 64 bytes with q of 2 bits, in the order of q3_k's low bits;
///   scale d. Element i is d * (q[i] - 1). The same as q4_k.
///
/// The weights of this one are those of WeightFormat::mxfp4, whose scales lie beside
/// (split_mxfp4()):
///
/// - mxfp4: 32 elements in 17 bytes. scale e8m0; 16 bytes of e2m1, as q of q4_0.
///
/// No kernel reads these, so they become numbers:
///
/// - q4_1, q5_1: 32 elements in 20 and 24 bytes. scale d; offset m; then as q4_0 and q5_0. Element
///   i is d * q[i] + m.
/// - q5_k: 256 elements in 176 bytes. Scales and 12 bytes as of q4_k; 32 bytes with the high bit of
///   q: bit g of byte j is that of element 32g + j; 128 bytes with the low 4 bits, as of q4_k.
///   Element i of group g is d * s[g] * q[i] - e * m[g].
/// - q2_k: 256 elements in 84 bytes. 16 bytes, of which the low half is a factor s[g] and the high
///   half a minimum m[g], for each group of 16; 64 bytes with q of 2 bits, in the order of q3_k's
///   low bits; scales d and e. Element i is d * s[i / 16] * q[i] - e * m[i / 16].
/// - iq4_xs: 256 elements in 136 bytes. scale d; 2 bytes with the high 2 bits of a 6-bit factor
///   s[g] for each of 8 groups of 32, from bit 2g on; 4 bytes with the low 4 bits, of an even g in
///   the low half of byte g / 2; 16 bytes of q for each group, as of q4_0. Element i of group g is
///   d * (s[g] - 32) * t[q[i]].
///
/// Source of the formats: ggml, ggml-common.h and gguf-py.
enum class BlockFormat : std::uint8_t {
  q8_0,
  q4_0,
  q4_k,
  q6_k,
  q5_0,
  iq4_nl,
  q3_k,
  q4_1,
  q5_1,
  q5_k,
  q2_k,
  iq4_xs,
  mxfp4,
  tq1_0,
  tq2_0
};

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
    BlockFormatTraits{BlockFormat::q5_0, "q5_0", 32, 22},
    BlockFormatTraits{BlockFormat::iq4_nl, "iq4_nl", 32, 18},
    BlockFormatTraits{BlockFormat::q3_k, "q3_k", 256, 110},
    BlockFormatTraits{BlockFormat::q4_1, "q4_1", 32, 20},
    BlockFormatTraits{BlockFormat::q5_1, "q5_1", 32, 24},
    BlockFormatTraits{BlockFormat::q5_k, "q5_k", 256, 176},
    BlockFormatTraits{BlockFormat::q2_k, "q2_k", 256, 84},
    BlockFormatTraits{BlockFormat::iq4_xs, "iq4_xs", 256, 136},
    BlockFormatTraits{BlockFormat::mxfp4, "mxfp4", 32, 17},
    BlockFormatTraits{BlockFormat::tq1_0, "tq1_0", 256, 54},
    BlockFormatTraits{BlockFormat::tq2_0, "tq2_0", 256, 66},
};

constexpr const BlockFormatTraits& block_traits(BlockFormat format) {
  return block_format_table[static_cast<std::size_t>(format)];
}
constexpr std::string_view to_string(BlockFormat format) {
  return block_traits(format).name;
}

/// Writes the elements of `blocks` consecutive blocks to `values`, as exact real numbers: every
/// product and difference of a format's formula is exact in FP64. A scale that is infinite or NaN
/// gives such elements. `data` needs no alignment.
void decode_blocks(BlockFormat format, const std::byte* data, std::size_t blocks, double* values);

/// Returns the blocks in which kernels read exactly the same weights: itself, or another one with
/// as many elements in a block; std::nullopt if there is none.
constexpr std::optional<BlockFormat> same_weights(BlockFormat format) {
  if (format <= BlockFormat::q6_k) return format;
  if (format <= BlockFormat::iq4_nl) return BlockFormat::q8_0;
  if (format == BlockFormat::q3_k) return BlockFormat::q6_k;
  if (format == BlockFormat::tq1_0 || format == BlockFormat::tq2_0) return BlockFormat::q4_k;
  return std::nullopt;
}

/// Writes consecutive blocks in the format same_weights(from), which must be another one.
void rewrite_blocks(BlockFormat from, const std::byte* data, std::size_t blocks, std::byte* to);

/// Writes consecutive blocks of mxfp4 as 16 bytes of codes in the order of weights, and a scale.
void split_mxfp4(const std::byte* data, std::size_t blocks, std::byte* codes, std::byte* scales);

}  // namespace greta::kernels
