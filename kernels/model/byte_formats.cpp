#include "kernels/model/byte_formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace greta::kernels {
namespace {

constexpr bool is_fnuz(ByteFormat format) {
  return format == ByteFormat::e4m3_fnuz || format == ByteFormat::e5m2_fnuz;
}

constexpr std::uint8_t nan_of(ByteFormat format) {
  return is_fnuz(format) ? 0x80 : 0x7f;
}

/// Returns the number of a byte by the format's rules.
float decoded(ByteFormat format, std::uint8_t byte) {
  if (format == ByteFormat::int8) return static_cast<float>(static_cast<std::int8_t>(byte));
  const ByteFormatTraits& t = traits(format);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const int sign_bit = 1 << (t.bits - 1), magnitude = byte & (sign_bit - 1);
  const float sign = (byte & sign_bit) != 0 ? -1.0F : 1.0F;
  if (is_fnuz(format) && byte == 0x80) return nan;
  if (format == ByteFormat::e4m3 && magnitude == 0x7f) return nan;
  if (format == ByteFormat::e5m2 && magnitude > 0x7c) return nan;
  if (format == ByteFormat::e5m2 && magnitude == 0x7c) {
    return sign * std::numeric_limits<float>::infinity();
  }
  const int exponent = magnitude >> t.mantissa_bits, one = 1 << t.mantissa_bits;
  const int mantissa = (magnitude & (one - 1)) + (exponent > 0 ? one : 0);
  return sign *
         std::ldexp(static_cast<float>(mantissa), std::max(exponent, 1) - t.bias - t.mantissa_bits);
}

}  // namespace

float decode_byte(ByteFormat format, std::uint8_t byte) {
  using Numbers = std::array<std::array<float, 256>, byte_format_table.size()>;
  static const Numbers numbers = [] {
    Numbers all{};
    for (const ByteFormatTraits& known : byte_format_table) {
      for (std::size_t i = 0; i < 256; ++i) {
        all.at(static_cast<std::size_t>(known.format)).at(i) =
            decoded(known.format, static_cast<std::uint8_t>(i));
      }
    }
    return all;
  }();
  return numbers[static_cast<std::size_t>(format)][byte];
}

std::uint8_t encode_byte(ByteFormat format, double value) {
  const ByteFormatTraits& t = traits(format);
  if (format == ByteFormat::int8) {
    if (std::isnan(value)) return 0;
    const double clamped = std::clamp(value, -128.0, 127.0);
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(std::nearbyint(clamped)));
  }
  if (std::isnan(value)) return format == ByteFormat::e2m1 ? 0 : nan_of(format);
  const double size = std::min(std::abs(value), t.largest);
  // The last bit of numbers of this size: that of the smallest normal number at least.
  const int exponent = size > 0 ? std::max(std::ilogb(size), 1 - t.bias) : 1 - t.bias;
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, t.mantissa_bits - exponent)));
  // Numbers follow each other as their bits do, also from one exponent to the next.
  const int magnitude = steps + ((exponent + t.bias - 1) << t.mantissa_bits);
  if (magnitude == 0 && is_fnuz(format)) return 0;
  return static_cast<std::uint8_t>(magnitude | (std::signbit(value) ? 1 << (t.bits - 1) : 0));
}

}  // namespace greta::kernels
