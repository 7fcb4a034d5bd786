#include <cmath>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
std::unique_ptr<Reference> add_reference(const Problem& problem,
                                         const std::vector<HostTensor>& inputs, std::uint64_t) {
  const TensorSpec out{"C", Role::output, problem.out_dtype, problem.dim("rows"),
                       problem.dim("cols")};
  const auto sum = [type = out.dtype, cols = out.cols, a = keep_tensor(inputs, "A"),
                    b = keep_tensor(inputs, "B")](std::int64_t row, std::int64_t col) {
    const auto at = static_cast<std::size_t>(row * cols + col);
    const double value = a->at(at) + b->at(at);
    return rounded(type, value, std::abs(value) * 0x1p-24 + 0x1p-126);
  };
  return elements_reference({{out, sum}});
}

}  // namespace greta::kernels
