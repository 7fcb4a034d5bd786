#include "kernels/planning/operand_work.hpp"

namespace greta::kernels {

double operand_bytes(const std::vector<TensorSpec>& tensors) {
  double bytes = 0;
  for (const TensorSpec& tensor : tensors) {
    const auto own = static_cast<double>(bytes_of(tensor.dtype, tensor.elements()));
    bytes += own * (tensor.role == Role::input_output ? 2 : 1);
  }
  return bytes;
}

Work work_per_element(const std::vector<TensorSpec>& tensors, const Problem& problem,
                      double flops) {
  const auto rows = static_cast<double>(problem.dim("rows"));
  return {flops * rows * static_cast<double>(problem.dim("cols")), operand_bytes(tensors)};
}

}  // namespace greta::kernels
