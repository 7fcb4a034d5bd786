#include "runtime/device/dtype.hpp"

#include <cmath>

#include "runtime/device/text/strings.hpp"

namespace greta::device {
namespace {

constexpr int bias_of(const DTypeTraits& t) {
  return (1 << (t.exponent_bits - 1)) - 1;
}

/// The bits of a floating point type of fewer than 32 bits. Rounds straight from FP64, so that no
/// value is rounded twice.
template <DType type>
std::uint32_t encode(double value) {
  constexpr DTypeTraits t = traits(type);
  constexpr int lowest_exponent = 1 - bias_of(t);
  constexpr std::uint64_t infinity = ((1ULL << t.exponent_bits) - 1) << t.mantissa_bits;
  constexpr std::uint64_t double_infinity = 0x7ffULL << 52;
  constexpr double normal = std::bit_cast<double>(std::uint64_t{1023 + lowest_exponent} << 52);
  // Its last bit weighs as much as the format's smallest number: adding it rounds a subnormal.
  constexpr double magic =
      std::bit_cast<double>(std::uint64_t{1023 + lowest_exponent - t.mantissa_bits + 52} << 52);
  constexpr int shift = 52 - t.mantissa_bits;

  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 63 << (t.bits - 1);
  const std::uint64_t magnitude = bits & ~(1ULL << 63);
  if (magnitude > double_infinity) {
    return static_cast<std::uint32_t>(sign | infinity | (1ULL << (t.mantissa_bits - 1)));
  }
  const auto absolute = std::bit_cast<double>(magnitude);
  if (absolute < normal) {
    const std::uint64_t rounded =
        std::bit_cast<std::uint64_t>(absolute + magic) - std::bit_cast<std::uint64_t>(magic);
    return static_cast<std::uint32_t>(sign | rounded);
  }
  const std::uint64_t half_less_one = (1ULL << (shift - 1)) - 1;
  const std::uint64_t rounded = (magnitude + half_less_one + (magnitude >> shift & 1)) >> shift;
  const std::uint64_t rebiased = rounded - (std::uint64_t{1023 - bias_of(t)} << t.mantissa_bits);
  return static_cast<std::uint32_t>(sign | (rebiased < infinity ? rebiased : infinity));
}

template <typename T>
void write(std::byte* data, std::size_t index, T stored) {
  std::memcpy(data + index * sizeof(T), &stored, sizeof(T));
}

template <DType type>
void store(std::byte* data, std::size_t index, double value) {
  constexpr DTypeTraits t = traits(type);
  if constexpr (t.kind == DTypeKind::integer) {
    write(data, index, static_cast<StoredInteger<type>>(std::nearbyint(value)));
  } else if constexpr (t.bits == 64) {
    write(data, index, value);
  } else if constexpr (t.bits == 32) {
    write(data, index, static_cast<float>(value));
  } else if constexpr (t.bits == 16) {
    write(data, index, static_cast<std::uint16_t>(encode<type>(value)));
  } else {
    write_bits(data, index, t.bits, encode<type>(value));
  }
}

}  // namespace

std::optional<DType> dtype_from_string(std::string_view text) {
  for (const DTypeTraits& known : dtype_table) {
    if (text == known.name) return known.type;
  }
  return std::nullopt;
}

std::vector<DType> converted_types() {
  std::vector<DType> types;
  for (const DTypeTraits& known : dtype_table) {
    if (kernels_convert(known.type)) types.push_back(known.type);
  }
  return types;
}

std::vector<DType> narrow_types() {
  std::vector<DType> types = converted_types();
  std::erase(types, DType::f32);
  return types;
}

std::string converted_types_text() {
  std::vector<std::string> names;
  for (const DType type : converted_types()) names.emplace_back(to_string(type));
  return one_of(names);
}

double unit_roundoff(DType type) {
  return is_floating(type) ? std::ldexp(1, -traits(type).mantissa_bits - 1) : 0;
}

double smallest_normal(DType type) {
  return is_floating(type) ? std::ldexp(1, 1 - bias_of(traits(type))) : 0;
}

double smallest_positive(DType type) {
  const DTypeTraits& t = traits(type);
  return is_floating(type) ? std::ldexp(1, 1 - bias_of(t) - t.mantissa_bits) : 1;
}

double largest_finite(DType type) {
  const DTypeTraits& t = traits(type);
  if (!is_floating(type)) return std::ldexp(1, t.has_sign ? t.bits - 1 : t.bits) - 1;
  return std::ldexp(2 - std::ldexp(1, -t.mantissa_bits), bias_of(t));
}

double underflow_error(DType type) {
  return traits(type).keeps_subnormals ? smallest_positive(type) / 2 : smallest_normal(type);
}

std::uint32_t read_bits(const std::byte* data, std::size_t index, int bits) {
  const std::size_t first = index * static_cast<std::size_t>(bits);
  std::uint32_t value = 0;
  for (int at = 0; at < bits; at += 8) {
    value |= std::to_integer<std::uint32_t>(data[(first + static_cast<std::size_t>(at)) / 8]) << at;
  }
  return value >> first % 8 & ((1U << bits) - 1);
}

void write_bits(std::byte* data, std::size_t index, int bits, std::uint32_t value) {
  const std::size_t first = index * static_cast<std::size_t>(bits);
  if (bits >= 8) {
    for (int at = 0; at < bits; at += 8) {
      data[(first + static_cast<std::size_t>(at)) / 8] = static_cast<std::byte>(value >> at & 0xff);
    }
    return;
  }
  const std::uint32_t mask = ((1U << bits) - 1) << first % 8;
  const auto others = std::to_integer<std::uint32_t>(data[first / 8]) & ~mask;
  data[first / 8] = static_cast<std::byte>(others | (value << first % 8 & mask));
}

double load_element(DType type, const std::byte* data, std::size_t index) {
  return with_dtype(
      type, [&](auto t) { return static_cast<double>(load<decltype(t)::value>(data, index)); });
}

void load_elements(DType type, const std::byte* data, std::size_t first, std::size_t count,
                   double* to) {
  with_dtype(type, [&](auto t) {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = static_cast<double>(load<decltype(t)::value>(data, first + i));
    }
  });
}

void store_element(DType type, std::byte* data, std::size_t index, double value) {
  with_dtype(type, [&](auto t) { store<decltype(t)::value>(data, index, value); });
}

}  // namespace greta::device
