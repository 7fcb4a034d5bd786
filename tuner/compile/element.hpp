#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Element types as cases name them: those of tensors, and f64, u32, i8, u8.

/// Bytes of one element; 0 for a name that is none.
std::size_t element_bytes(std::string_view dtype);
/// Reads element `index` of packed elements of a type that element_bytes() knows.
double load_element(std::string_view dtype, const std::byte* data, std::size_t index);

}  // namespace greta::tuner
