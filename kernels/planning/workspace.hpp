#pragma once

#include <concepts>

#include "kernels/model/expression.hpp"

namespace greta::kernels {

/// Returns the size of a part of a workspace of so many bytes, after which the next part is aligned
/// to 256 bytes.
constexpr auto workspace_part(std::integral auto bytes) {
  return round_up(bytes, 256);
}

/// Returns the size of a part of shared memory of so many bytes, after which the next part is
/// aligned to 1024 bytes, as swizzled panels of tensor maps and warpgroup instructions must be.
constexpr auto panels_part(std::integral auto bytes) {
  return round_up(bytes, 1024);
}

}  // namespace greta::kernels
