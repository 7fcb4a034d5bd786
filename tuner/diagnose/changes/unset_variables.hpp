#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A variable that a kernel reads, but that nothing in its source sets.
struct UnsetVariable {
  std::string name;
  /// Lines of the source, from 1 on; of the first reading, or 0 for a parameter that returns a
  /// value.
  std::size_t declared = 0, read = 0;
};

/// Returns such variables of what a kernel's entry uses: those of functions and of shared memory
/// that are declared without a value, and parameters `out` of GLSL. Variables that are passed on,
/// or that a macro names, count as set.
std::vector<UnsetVariable> unset_variables(std::string_view source, std::string_view entry);

}  // namespace greta::tuner
