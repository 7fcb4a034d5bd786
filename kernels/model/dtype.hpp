#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Element types of tensors. Arithmetic is f32 inside every kernel; i32 is for positions, numbers
/// of rows and the like, and no operation computes in it.
enum class DType { f32, f16, bf16, i32 };

std::string_view to_string(DType type);  ///< "f32", "f16", "bf16", "i32"
std::optional<DType> dtype_from_string(std::string_view text);
std::size_t size_of(DType type);  ///< bytes of one element
/// Half the distance between 1 and the next number: 2^-24, 2^-11, 2^-8; 0 for integers.
double unit_roundoff(DType type);
/// Smallest positive normal number; 0 for integers.
double smallest_normal(DType type);

/// The number that 16 bits stand for. No branches, so that loops become vector code.
inline float decode_f16(std::uint16_t stored) {
  constexpr std::uint32_t rebias = std::uint32_t{127 - 15} << 23;
  const std::uint32_t sign = (stored & 0x8000U) << 16, magnitude = stored & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13) + (magnitude < 0x7c00U ? rebias : 2 * rebias);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  const std::uint32_t bits = magnitude < 0x400U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(sign | bits);
}
inline float decode_bf16(std::uint16_t stored) {
  return std::bit_cast<float>(std::uint32_t{stored} << 16);
}

/// Reads element `index` of packed elements of a type: as float where that has all its numbers,
/// else as double.
template <DType type>
auto load(const std::byte* data, std::size_t index) {
  const auto read = [&](auto stored) {
    std::memcpy(&stored, data + index * sizeof(stored), sizeof(stored));
    return stored;
  };
  if constexpr (type == DType::f32) return read(float{});
  if constexpr (type == DType::f16) return decode_f16(read(std::uint16_t{}));
  if constexpr (type == DType::bf16) return decode_bf16(read(std::uint16_t{}));
  if constexpr (type == DType::i32) return static_cast<double>(read(std::int32_t{}));
}

/// Reads element `index` of packed elements.
double load_element(DType type, const std::byte* data, std::size_t index);
/// Rounds to nearest even and stores; integers must hold the value.
void store_element(DType type, std::byte* data, std::size_t index, double value);

}  // namespace greta::kernels
