#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Numbers of at most eight bits that matrix cores multiply.
///
/// - e4m3, e5m2: the 8-bit floating-point formats of the Open Compute Project ("OCP 8-bit Floating
///   Point Specification", 2023). e4m3 has no infinities, and NaN where all bits but the sign are
///   set. e5m2 has those of IEEE 754.
/// - e4m3_fnuz, e5m2_fnuz: AMD's formats of gfx940 and gfx942, with a bias that is greater by one,
///   without infinities and without a negative zero, whose bits stand for NaN.
/// - int8: integers in two's complement.
/// - e2m1: numbers of four bits, two in a byte, the even one in its lower half. There are neither
///   infinities nor NaN. Source: FP4 of the OCP Microscaling Formats (MX) Specification,
///   version 1.0.
enum class ByteFormat : std::uint8_t { e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, int8, e2m1 };

/// What the project knows about a format.
struct ByteFormatTraits {
  ByteFormat format;
  std::string_view name;
  int mantissa_bits = 0;  ///< without the implicit bit; 0: integers
  int bias = 0;           ///< of the exponent
  double largest = 0;     ///< the largest finite number
  int bits = 8;
};

/// All formats, in the order of the enumeration.
inline constexpr std::array byte_format_table{
    ByteFormatTraits{ByteFormat::e4m3, "e4m3", 3, 7, 448},
    ByteFormatTraits{ByteFormat::e5m2, "e5m2", 2, 15, 57344},
    ByteFormatTraits{ByteFormat::e4m3_fnuz, "e4m3_fnuz", 3, 8, 240},
    ByteFormatTraits{ByteFormat::e5m2_fnuz, "e5m2_fnuz", 2, 16, 57344},
    ByteFormatTraits{ByteFormat::int8, "int8", 0, 0, 127},
    ByteFormatTraits{ByteFormat::e2m1, "e2m1", 1, 1, 6, 4},
};

constexpr const ByteFormatTraits& traits(ByteFormat format) {
  return byte_format_table[static_cast<std::size_t>(format)];
}
constexpr std::string_view to_string(ByteFormat format) {
  return traits(format).name;
}
constexpr std::optional<ByteFormat> byte_format_from_string(std::string_view name) {
  for (const ByteFormatTraits& known : byte_format_table) {
    if (known.name == name) return known.format;
  }
  return std::nullopt;
}

/// Returns the bytes of `count` numbers, which are whole bytes.
constexpr std::int64_t bytes_of_numbers(ByteFormat format, std::int64_t count) {
  return count * traits(format).bits / 8;
}

/// Returns the number that a byte stands for, which may be NaN or infinite. Of e2m1 it is that of
/// the lower half.
float decode_byte(ByteFormat format, std::uint8_t byte);

/// Returns the byte of the number closest to `value`, with ties to even. Numbers beyond the largest
/// finite one, infinities included, become that one: conversions saturate. NaN becomes NaN, or with
/// int8 and e2m1 zero. A number of e2m1 is in the lower half.
std::uint8_t encode_byte(ByteFormat format, double value);

}  // namespace greta::kernels
