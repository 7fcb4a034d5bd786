#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device::hip {

/// Whether an entry is the instantiation of a template: "scale<float, 4>".
inline bool is_instantiation(std::string_view entry) {
  return entry.find('<') != std::string_view::npos;
}

/// Returns the symbol of a kernel in a code object: `entry` itself, or else the function that C++
/// calls so. An entry may be a function, as "vector_add" or "my::vector_add", or the instantiation
/// of a template. Instantiations are compared as they are demangled, without spaces; where none
/// fits, as with the names of typedefs, the only one of that template is meant. Returns `entry`
/// where no function or more than one fits.
std::string entry_symbol(std::span<const std::byte> code_object, const std::string& entry);

}  // namespace greta::device::hip
