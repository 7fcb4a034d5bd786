#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace greta::kernels {

/// How quantised weights are stored. Rows of weights are divided into blocks of consecutive ones,
/// which share a scale.
///
/// - int4, int8: integers alone, row after row; the scales, one for each group of a row, and zero
///   points are operands of their own. A byte of int4 has an even weight in its lower half and the
///   next one in its upper half. Without zero points, the integers are q - 8 (int4) or in two's
///   complement (int8); with zero points both are unsigned, and a weight is scale (q - zero).
/// - q4_0, q8_0, q4_k, q6_k: the blocks of GGUF files, as they lie there, which hold their scales.
enum class WeightFormat : std::uint8_t { int4, int8, q4_0, q8_0, q4_k, q6_k };

/// What the project knows about a format of weights.
struct WeightFormatTraits {
  WeightFormat format;
  std::string_view name;  ///< the value of the attribute `weights`
  /// Weights of a block; 0: of a group, whose length is an attribute of the problem.
  std::int64_t block = 0;
  std::int64_t block_bytes = 0;  ///< of integers and scales; 0 if there are no blocks
  int bits = 0;                  ///< of a weight's integer
};

/// All formats, in the order of the enumeration.
inline constexpr std::array weight_format_table{
    WeightFormatTraits{.format = WeightFormat::int4, .name = "int4", .bits = 4},
    WeightFormatTraits{.format = WeightFormat::int8, .name = "int8", .bits = 8},
    WeightFormatTraits{WeightFormat::q4_0, "q4_0", 32, 18, 4},
    WeightFormatTraits{WeightFormat::q8_0, "q8_0", 32, 34, 8},
    WeightFormatTraits{WeightFormat::q4_k, "q4_k", 256, 144, 4},
    WeightFormatTraits{WeightFormat::q6_k, "q6_k", 256, 210, 6},
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

/// Returns whether the blocks hold their scales.
constexpr bool in_blocks(WeightFormat format) {
  return traits(format).block > 0;
}

/// Returns the bytes of a row of `count` weights, which are whole blocks or groups.
constexpr std::int64_t row_bytes(WeightFormat format, std::int64_t count) {
  const WeightFormatTraits& t = traits(format);
  return in_blocks(format) ? count / t.block * t.block_bytes : count * t.bits / 8;
}

}  // namespace greta::kernels
