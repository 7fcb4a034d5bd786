#include "kernels/templates/gemm/transposition.hpp"

#include <algorithm>
#include <utility>

#include "kernels/planning/workspace.hpp"
#include "kernels/templates/gemm/plan.hpp"

namespace greta::kernels::gemm {
namespace {

constexpr std::int64_t side = 32;  ///< of a workgroup's square

std::int64_t padded(std::int64_t length) {
  return round_up(length, 4);
}

/// Returns the size of a copy, rounded up to the alignment of the next one.
std::int64_t copy_bytes(const Shape& shape, bool along_k, std::int64_t extent) {
  return along_k ? workspace_part(shape.k * padded(extent) * 4) : 0;
}

std::int64_t squares(const Shape& shape, bool along_k, std::int64_t extent) {
  return along_k ? ceil_div(extent, side) * ceil_div(shape.k, side) : 0;
}

}  // namespace

bool has_operand_along_k(const Shape& shape) {
  return (shape.a_along_k || shape.b_along_k) && !shape.several();
}

Shape transposed(const Shape& shape) {
  Shape copy = shape;
  if (shape.a_along_k) copy.lda = copy.a_offset = 0;
  if (shape.b_along_k) copy.ldb = copy.b_offset = 0;
  copy.a_along_k = copy.b_along_k = false;
  return copy;
}

std::int64_t transposed_bytes(const Shape& shape) {
  return copy_bytes(shape, shape.a_along_k, shape.m) + copy_bytes(shape, shape.b_along_k, shape.n);
}

void add_transposition(LaunchPlan& plan, const Shape& shape, const DeviceInfo& device) {
  add_copies(plan, shape, device,
             {.kernel = "transpose",
              .defines = problem_defines(shape),
              .a_bytes = copy_bytes(shape, shape.a_along_k, shape.m),
              .b_bytes = copy_bytes(shape, shape.b_along_k, shape.n),
              .workgroups = std::max(squares(shape, shape.a_along_k, shape.m),
                                     squares(shape, shape.b_along_k, shape.n))});
}

LaunchWork work_of_transposition(const Shape& shape) {
  LaunchWork copy;
  copy.threads = 256;
  copy.registers = 32;
  copy.workgroups = static_cast<double>(squares(shape, shape.a_along_k, shape.m) +
                                        squares(shape, shape.b_along_k, shape.n));
  copy.read_bytes = copy.written_bytes = copy.ahead_bytes = side * side * 4;
  copy.loads = side * side;
  copy.barriers = 1;
  copy.unique_bytes = 2 * static_cast<double>(transposed_bytes(shape));
  return copy;
}

}  // namespace greta::kernels::gemm
