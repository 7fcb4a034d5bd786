#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Element types of tensors and of matrix instructions, in the order of dtype_table. Arithmetic is
/// f32 inside every kernel of GRETA's own. i32 is for positions, numbers of rows and the like; no
/// operation computes in it. The types after it occur in kernels that files describe.
enum class DType : std::uint8_t { f32, f16, bf16, i32, f64, i64, u32, i8, u8 };

enum class DTypeKind { floating, integer };

/// What the project knows about an element type. A name that is empty means that the element type
/// does not exist there.
struct DTypeTraits {
  DType type;
  std::string_view name;  ///< in keys of problems, in JSON, in CSV files and on command lines
  DTypeKind kind = DTypeKind::floating;
  int bits = 0;  ///< of one element in memory, which may be less than 8
  bool has_sign = true;
  int exponent_bits = 0;  ///< of floating point types; the layout is that of IEEE 754
  int mantissa_bits = 0;  ///< without the implicit bit
  /// Whether every device computes with subnormal numbers of this type. Others may flush them to 0.
  bool keeps_subnormals = false;
  // Kernel sources have conversions of the types that have these names.
  std::string_view hip{};            ///< the C++ type in common/types.hip
  std::string_view glsl{};           ///< the view of memory in common/memory.glsl
  std::string_view glsl_register{};  ///< the GLSL type that holds a loaded element
  // Interchange formats
  std::string_view safetensors{};
  std::string_view torch{};  ///< in the files of PyTorch's TunableOp
};

/// All element types. greta.h numbers them in the same order, so new ones are appended.
inline constexpr std::array dtype_table{
    DTypeTraits{.type = DType::f32,
                .name = "f32",
                .bits = 32,
                .exponent_bits = 8,
                .mantissa_bits = 23,
                .hip = "float",
                .glsl = "F32",
                .glsl_register = "float",
                .safetensors = "F32",
                .torch = "float"},
    DTypeTraits{.type = DType::f16,
                .name = "f16",
                .bits = 16,
                .exponent_bits = 5,
                .mantissa_bits = 10,
                .keeps_subnormals = true,
                .hip = "f16",
                .glsl = "F16",
                .glsl_register = "float",
                .safetensors = "F16",
                .torch = "Half"},
    DTypeTraits{.type = DType::bf16,
                .name = "bf16",
                .bits = 16,
                .exponent_bits = 8,
                .mantissa_bits = 7,
                .hip = "bf16",
                .glsl = "BF16",
                .glsl_register = "uint",
                .safetensors = "BF16",
                .torch = "BFloat16"},
    DTypeTraits{.type = DType::i32,
                .name = "i32",
                .kind = DTypeKind::integer,
                .bits = 32,
                .safetensors = "I32"},
    DTypeTraits{.type = DType::f64,
                .name = "f64",
                .bits = 64,
                .exponent_bits = 11,
                .mantissa_bits = 52,
                .keeps_subnormals = true},
    DTypeTraits{.type = DType::i64, .name = "i64", .kind = DTypeKind::integer, .bits = 64},
    DTypeTraits{.type = DType::u32,
                .name = "u32",
                .kind = DTypeKind::integer,
                .bits = 32,
                .has_sign = false},
    DTypeTraits{.type = DType::i8, .name = "i8", .kind = DTypeKind::integer, .bits = 8},
    DTypeTraits{
        .type = DType::u8, .name = "u8", .kind = DTypeKind::integer, .bits = 8, .has_sign = false},
};

constexpr bool dtype_table_is_ordered() {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    if (static_cast<std::size_t>(dtype_table[i].type) != i) return false;
  }
  return true;
}
static_assert(dtype_table_is_ordered());

constexpr const DTypeTraits& traits(DType type) {
  return dtype_table[static_cast<std::size_t>(type)];
}

constexpr std::string_view to_string(DType type) {
  return traits(type).name;
}
std::optional<DType> dtype_from_string(std::string_view text);

constexpr int bits_of(DType type) {
  return traits(type).bits;
}
/// Bytes of packed elements: of an integer, rounded up to whole ones.
template <typename Count>
constexpr Count bytes_of(DType type, Count elements) {
  const int bits = bits_of(type);
  if (bits % 8 == 0) return elements * static_cast<Count>(bits / 8);
  const Count total = elements * static_cast<Count>(bits);
  return std::is_integral_v<Count> ? (total + 7) / 8 : total / 8;
}
constexpr bool is_floating(DType type) {
  return traits(type).kind == DTypeKind::floating;
}
/// Whether kernels convert elements of this type to f32 and back: operations can take it.
constexpr bool kernels_convert(DType type) {
  return !traits(type).hip.empty() && !traits(type).glsl.empty();
}
/// The types that kernels convert, in the table's order: f32, f16, bf16.
std::vector<DType> converted_types();
/// The same without f32, which needs no conversion.
std::vector<DType> narrow_types();
/// "f32, f16 or bf16": the types that kernels convert.
std::string converted_types_text();

/// Half the distance between 1 and the next number: 2^-24, 2^-11, 2^-8; 0 for integers.
double unit_roundoff(DType type);
/// Smallest positive normal number; 0 for integers.
double smallest_normal(DType type);
/// Smallest positive number: 2^-149, 2^-24, 2^-133; 1 for integers.
double smallest_positive(DType type);
/// Largest finite number.
double largest_finite(DType type);
/// The most that rounding to nearest changes a number below the smallest normal one: half of the
/// smallest number, or the smallest normal number where devices may flush.
double underflow_error(DType type);

/// Calls function(std::integral_constant<DType, type>()). All calls must return the same type.
template <std::size_t first = 0, typename Function>
constexpr decltype(auto) with_dtype(DType type, Function&& function) {
  constexpr DType here = dtype_table[first].type;
  if constexpr (first + 1 < dtype_table.size()) {
    if (type != here) return with_dtype<first + 1>(type, function);
  }
  return function(std::integral_constant<DType, here>());
}

/// The number that `bits` consecutive bits stand for, 16 at most, which begin at a multiple of
/// their number; the lowest bits of a byte come first.
std::uint32_t read_bits(const std::byte* data, std::size_t index, int bits);
void write_bits(std::byte* data, std::size_t index, int bits, std::uint32_t value);

/// The number that the bits of a floating point type of 16 bits or fewer stand for. There are no
/// branches, so that loops become vector code.
template <DType type>
float decode(std::uint32_t stored) {
  constexpr DTypeTraits t = traits(type);
  static_assert(t.kind == DTypeKind::floating && t.bits <= 16);
  constexpr std::uint32_t sign_bit = 1U << (t.bits - 1);
  constexpr int shift = 23 - t.mantissa_bits;
  const std::uint32_t sign = (stored & sign_bit) << (32 - t.bits);
  const std::uint32_t magnitude = stored & (sign_bit - 1);
  if constexpr (t.exponent_bits == 8) {
    return std::bit_cast<float>(sign | magnitude << shift);
  } else {
    constexpr int bias = (1 << (t.exponent_bits - 1)) - 1;
    constexpr std::uint32_t rebias = std::uint32_t{127 - bias} << 23;
    constexpr std::uint32_t infinite_rebias = std::uint32_t{256 - (1 << t.exponent_bits)} << 23;
    constexpr std::uint32_t infinity = ((1U << t.exponent_bits) - 1) << t.mantissa_bits;
    constexpr auto last_bit =
        std::bit_cast<float>(std::uint32_t{127 + 1 - bias - t.mantissa_bits} << 23);
    const std::uint32_t normal =
        (magnitude << shift) + (magnitude < infinity ? rebias : infinite_rebias);
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * last_bit;
    const std::uint32_t bits =
        magnitude < 1U << t.mantissa_bits ? std::bit_cast<std::uint32_t>(subnormal) : normal;
    return std::bit_cast<float>(sign | bits);
  }
}

/// The C++ type that stores an integer type's elements.
template <DType type>
using StoredInteger = std::conditional_t<
    traits(type).bits == 64, std::int64_t,
    std::conditional_t<traits(type).bits == 32,
                       std::conditional_t<traits(type).has_sign, std::int32_t, std::uint32_t>,
                       std::conditional_t<traits(type).has_sign, std::int8_t, std::uint8_t>>>;

/// Reads element `index` of packed elements of a type: as float where that has all its numbers,
/// else as double, which has the integers up to 2^53.
template <DType type>
auto load(const std::byte* data, std::size_t index) {
  constexpr DTypeTraits t = traits(type);
  const auto read = [&](auto stored) {
    std::memcpy(&stored, data + index * sizeof(stored), sizeof(stored));
    return stored;
  };
  if constexpr (t.kind == DTypeKind::integer) {
    return static_cast<double>(read(StoredInteger<type>{}));
  } else if constexpr (t.bits == 64) {
    return read(double{});
  } else if constexpr (t.bits == 32) {
    return read(float{});
  } else if constexpr (t.bits == 16) {
    return decode<type>(read(std::uint16_t{}));
  } else {
    return decode<type>(read_bits(data, index, t.bits));
  }
}

/// Reads element `index` of packed elements.
double load_element(DType type, const std::byte* data, std::size_t index);
/// Reads `count` of them, from element `first` on.
void load_elements(DType type, const std::byte* data, std::size_t first, std::size_t count,
                   double* to);
/// Rounds to nearest even and stores; integers must hold the value.
void store_element(DType type, std::byte* data, std::size_t index, double value);

}  // namespace greta::device
