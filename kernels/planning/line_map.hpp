#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/planning/plan.hpp"

namespace greta::kernels {

/// Returns the map of an operand of so many lines of `bytes`, whose elements are pairs of bytes, in
/// boxes of `box_lines`, plain ones of `plain_bytes` if that is not 0.
inline Argument map_of_lines(std::size_t operand, std::int64_t lines, std::int64_t bytes,
                             std::int64_t box_lines, std::int64_t plain_bytes = 0) {
  TensorMap map;
  map.type = DType::f16;
  map.columns = static_cast<std::uint64_t>(bytes / 2);
  map.rows = static_cast<std::uint64_t>(lines);
  map.row_bytes = static_cast<std::uint64_t>(bytes);
  map.box_rows = static_cast<std::uint32_t>(box_lines);
  map.plain_bytes = static_cast<std::uint32_t>(plain_bytes);
  return TensorMapArgument{OperandArgument{operand}, map};
}

}  // namespace greta::kernels
