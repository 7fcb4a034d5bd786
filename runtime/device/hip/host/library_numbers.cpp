#include "runtime/device/hip/host/library_numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/device/hip/matrix_library.hpp"

namespace greta::device::hip::host {
namespace {

double f16_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

std::uint16_t f16_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00;
  const double size = std::abs(value);
  if (size == 0) return sign;
  if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(size, &exponent);                    // size is in [2^(exponent-1), 2^exponent)
  const int step = std::max(exponent - 11, -24);  // of the last digit
  const auto digits = static_cast<int>(std::nearbyint(std::ldexp(size, -step)));
  // The leading digit of a normal number adds one to the exponent.
  return static_cast<std::uint16_t>(sign + ((step + 24) << 10) + digits);
}

std::uint16_t bf16_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double e4m3_value(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if (exponent == 15 && mantissa == 7) return NAN;
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
}

}  // namespace

std::int64_t bytes_of_type(int type) {
  if (type == type_e4m3 || type == type_i8) return 1;
  return type == type_f32 || type == type_i32 ? 4 : 2;
}

double load_element(const void* from, int type, std::uint64_t at) {
  if (type == type_e4m3) return e4m3_value(static_cast<const std::uint8_t*>(from)[at]);
  if (type == type_i8) return static_cast<const std::int8_t*>(from)[at];
  if (type == type_i32) return static_cast<const std::int32_t*>(from)[at];
  if (type == type_f32) return static_cast<const float*>(from)[at];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(from)[at];
  return type == type_f16 ? f16_value(bits) : std::bit_cast<float>(std::uint32_t{bits} << 16);
}

void store_element(void* to, int type, std::uint64_t at, double value) {
  if (type == type_f32) {
    static_cast<float*>(to)[at] = static_cast<float>(value);
  } else if (type == type_i32) {
    static_cast<std::int32_t*>(to)[at] = static_cast<std::int32_t>(value);
  } else {
    static_cast<std::uint16_t*>(to)[at] = type == type_f16 ? f16_bits(value) : bf16_bits(value);
  }
}

double OperandScales::at(std::uint64_t line, std::uint64_t k, std::uint64_t lines,
                         std::uint64_t depth) const {
  constexpr std::uint64_t block = 128;
  const std::uint64_t blocks = (depth + block - 1) / block;
  switch (static_cast<ScaleMode>(mode)) {
    case ScaleMode::rows:
      return first[line];
    case ScaleMode::vectors:  // lines are contiguous
      return first[k / block * lines + line];
    case ScaleMode::blocks:  // blocks of k are contiguous, in fours
      return first[line / block * ((blocks + 3) / 4 * 4) + k / block];
    default:
      return first[0];
  }
}

bool OperandScales::of_blocks() const {
  return mode == static_cast<std::int32_t>(ScaleMode::vectors) ||
         mode == static_cast<std::int32_t>(ScaleMode::blocks);
}

}  // namespace greta::device::hip::host
