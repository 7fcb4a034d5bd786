#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/model/block_formats.hpp"

namespace greta::kernels {

/// How the weights of a product are stored, row after row.
///
/// - int4, int8: integers alone; the scales, one for each group of a row, and zero points are
///   operands of their own. A byte of int4 has an even weight in its lower half and the next one in
///   its upper half. Without zero points, the integers are q - 8 (int4) or in two's complement
///   (int8); with zero points both are unsigned, and a weight is scale (q - zero).
/// - q4_0, q8_0, q4_k, q6_k: blocks that hold their scales (BlockFormat).
/// - mxfp4: numbers of four bits, e2m1, in the order of int4, in groups of 32. Their scales, e8m0,
///   are an operand of their own. Source: MXFP4 of the OCP Microscaling Formats (MX) Specification,
///   version 1.0.
enum class WeightFormat : std::uint8_t { int4, int8, q4_0, q8_0, q4_k, q6_k, mxfp4 };

/// What the project knows about a format of weights.
struct WeightFormatTraits {
  WeightFormat format;
  std::string_view name;  ///< the value of the attribute `weights`
  int bits = 0;           ///< of a weight without its scale
  std::optional<BlockFormat> blocks{};
};

/// All formats, in the order of the enumeration.
inline constexpr std::array weight_format_table{
    WeightFormatTraits{WeightFormat::int4, "int4", 4},
    WeightFormatTraits{WeightFormat::int8, "int8", 8},
    WeightFormatTraits{WeightFormat::q4_0, to_string(BlockFormat::q4_0), 4, BlockFormat::q4_0},
    WeightFormatTraits{WeightFormat::q8_0, to_string(BlockFormat::q8_0), 8, BlockFormat::q8_0},
    WeightFormatTraits{WeightFormat::q4_k, to_string(BlockFormat::q4_k), 4, BlockFormat::q4_k},
    WeightFormatTraits{WeightFormat::q6_k, to_string(BlockFormat::q6_k), 6, BlockFormat::q6_k},
    WeightFormatTraits{WeightFormat::mxfp4, "mxfp4", 4},
};

constexpr const WeightFormatTraits& traits(WeightFormat format) {
  return weight_format_table[static_cast<std::size_t>(format)];
}

constexpr std::optional<WeightFormat> weight_format_from_string(std::string_view name) {
  for (const WeightFormatTraits& known : weight_format_table) {
    if (known.name == name) return known.format;
  }
  return std::nullopt;
}

/// Returns whether the weights are in blocks that hold their scales.
constexpr bool in_blocks(WeightFormat format) {
  return traits(format).blocks.has_value();
}

/// Returns whether blocks have further blocks with scales of their own.
constexpr bool in_super_blocks(WeightFormat format) {
  return format == WeightFormat::q4_k || format == WeightFormat::q6_k;
}

/// Returns the length of the only groups that a format has beside its weights; 0: groups have one
/// of several lengths, or there are none.
constexpr std::int64_t only_group(WeightFormat format) {
  return format == WeightFormat::mxfp4 ? 32 : 0;
}

/// Returns the number that four bits of mxfp4 stand for: a sign, two bits of exponent, one of
/// mantissa.
constexpr double e2m1_value(int code) {
  constexpr std::array<double, 8> sizes{0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const double size = sizes[static_cast<std::size_t>(code & 7)];
  return (code & 8) != 0 ? -size : size;
}

/// Returns the scale that a byte of mxfp4 stands for: 2^(code - 127), or NaN for 255.
constexpr double e8m0_value(int code) {
  if (code == 255) return std::numeric_limits<double>::quiet_NaN();
  double value = 1;
  for (int i = 127; i < code; ++i) value *= 2;
  for (int i = code; i < 127; ++i) value /= 2;
  return value;
}

/// Returns the weights of a block, of which a row has a whole number; 1 if there are none.
constexpr std::int64_t block_weights(WeightFormat format) {
  return in_blocks(format)
             ? static_cast<std::int64_t>(block_traits(*traits(format).blocks).elements)
             : 1;
}
/// Returns the bytes of a block; 0 if there are none.
constexpr std::int64_t block_bytes(WeightFormat format) {
  return in_blocks(format) ? static_cast<std::int64_t>(block_traits(*traits(format).blocks).bytes)
                           : 0;
}

/// Returns the bytes of a row of `count` weights, which are whole blocks or groups.
constexpr std::int64_t row_bytes(WeightFormat format, std::int64_t count) {
  return in_blocks(format) ? count / block_weights(format) * block_bytes(format)
                           : count * traits(format).bits / 8;
}

}  // namespace greta::kernels
