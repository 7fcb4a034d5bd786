#include "kernels/model/dtype.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/device/result.hpp"

namespace greta::kernels {
namespace {

/// A 16-bit IEEE-like format: a sign, exponent bits, mantissa bits.
template <int exponent_bits, int mantissa_bits>
struct Format {
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr std::uint64_t infinity = ((1ULL << exponent_bits) - 1) << mantissa_bits;
  static constexpr int lowest_exponent = 1 - bias;

  /// Rounds straight from FP64, so that no value is rounded twice.
  static std::uint16_t encode(double value) {
    constexpr std::uint64_t double_infinity = 0x7ffULL << 52;
    constexpr double normal = std::bit_cast<double>(std::uint64_t{1023 + lowest_exponent} << 52);
    // Its last bit weighs as much as the format's smallest number: adding it rounds a subnormal.
    constexpr double magic =
        std::bit_cast<double>(std::uint64_t{1023 + lowest_exponent - mantissa_bits + 52} << 52);
    constexpr int shift = 52 - mantissa_bits;

    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t sign = bits >> 63 << 15;
    const std::uint64_t magnitude = bits & ~(1ULL << 63);
    if (magnitude > double_infinity) {
      return static_cast<std::uint16_t>(sign | infinity | (1ULL << (mantissa_bits - 1)));
    }
    const auto absolute = std::bit_cast<double>(magnitude);
    if (absolute < normal) {
      const std::uint64_t rounded =
          std::bit_cast<std::uint64_t>(absolute + magic) - std::bit_cast<std::uint64_t>(magic);
      return static_cast<std::uint16_t>(sign | rounded);
    }
    const std::uint64_t half_less_one = (1ULL << (shift - 1)) - 1;
    const std::uint64_t rounded = (magnitude + half_less_one + (magnitude >> shift & 1)) >> shift;
    const std::uint64_t rebiased = rounded - (std::uint64_t{1023 - bias} << mantissa_bits);
    return static_cast<std::uint16_t>(sign | (rebiased < infinity ? rebiased : infinity));
  }
};

using F16 = Format<5, 10>;
using Bf16 = Format<8, 7>;

template <typename T>
void write(std::byte* data, std::size_t index, T stored) {
  std::memcpy(data + index * sizeof(T), &stored, sizeof(T));
}

[[noreturn]] void throw_unknown() {
  throw Error("element type out of range");
}

}  // namespace

std::string_view to_string(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
  }
  throw_unknown();
}

std::optional<DType> dtype_from_string(std::string_view text) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    if (text == to_string(type)) return type;
  }
  return std::nullopt;
}

std::size_t size_of(DType type) {
  return type == DType::f32 || type == DType::i32 ? 4 : 2;
}

double unit_roundoff(DType type) {
  switch (type) {
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    case DType::i32:
      return 0;
  }
  throw_unknown();
}

double smallest_normal(DType type) {
  if (type == DType::i32) return 0;
  return type == DType::f16 ? 0x1p-14 : 0x1p-126;
}

double load_element(DType type, const std::byte* data, std::size_t index) {
  switch (type) {
    case DType::f32:
      return load<DType::f32>(data, index);
    case DType::f16:
      return load<DType::f16>(data, index);
    case DType::bf16:
      return load<DType::bf16>(data, index);
    case DType::i32:
      return load<DType::i32>(data, index);
  }
  throw_unknown();
}

void store_element(DType type, std::byte* data, std::size_t index, double value) {
  switch (type) {
    case DType::f32:
      return write(data, index, static_cast<float>(value));
    case DType::f16:
      return write(data, index, F16::encode(value));
    case DType::bf16:
      return write(data, index, Bf16::encode(value));
    case DType::i32:
      return write(data, index, static_cast<std::int32_t>(std::nearbyint(value)));
  }
  throw_unknown();
}

}  // namespace greta::kernels
