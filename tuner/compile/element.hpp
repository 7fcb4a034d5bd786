#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Element types as cases name them: those of tensors, and f64, u32, i8, u8.

/// Returns the size of one element in bytes; 0 for an unknown name.
std::size_t element_bytes(std::string_view dtype);
/// Reads element `index` of packed elements of a type known to element_bytes().
double load_element(std::string_view dtype, const std::byte* data, std::size_t index);

}  // namespace greta::tuner
