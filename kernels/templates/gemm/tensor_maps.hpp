#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/launch_plan.hpp"
#include "kernels/templates/gemm/shape.hpp"

namespace greta::kernels::gemm {

/// Lines of the boxes in which A and B are copied.
struct BoxLines {
  std::int64_t a = 0, b = 0;
};

/// Appends the operands' maps, which differ where an operand is copied to aligned rows.
void add_tensor_maps(std::vector<Argument>& arguments, const Shape& shape, const BoxLines& boxes);

}  // namespace greta::kernels::gemm
