#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/described/description.hpp"

namespace greta::kernels::described {

/// Returns the whole text of a GLSL kernel: the version of the sources (4.60 if they have none),
/// the macros, the sources, the size of the workgroup, and a main() that calls `entry`, unless that
/// is main itself. For each entry of the description there is a macro ENTRY_IS_name, which is 1 for
/// this one and 0 for others.
std::string glsl_text(const Description& description, const std::string& macros,
                      const std::string& sources, const std::string& entry,
                      const std::array<std::uint32_t, 3>& workgroup);

}  // namespace greta::kernels::described
