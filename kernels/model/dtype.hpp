#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace greta {

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

/// Reads element `index` of packed elements.
double load_element(DType type, const std::byte* data, std::size_t index);
/// Rounds to nearest even and stores; integers must hold the value.
void store_element(DType type, std::byte* data, std::size_t index, double value);

}  // namespace greta
