#include <cmath>

#include "kernels/reference/activation.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
std::unique_ptr<Reference> gelu_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs, std::uint64_t) {
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("rows"),
                       problem.dim("cols")};
  const ActivationFunction function = problem.attribute("form", "tanh") == "erf"
                                          ? ActivationFunction::gelu_erf
                                          : ActivationFunction::gelu_tanh;
  const auto gelu = [type = out.dtype, cols = out.cols, function, x = keep_tensor(inputs, "x")](
                        std::int64_t row, std::int64_t col) {
    const double argument = x->at(static_cast<std::size_t>(row * cols + col));
    return rounded(type, activate(function, argument), activation_error(function, argument));
  };
  return elements_reference({{out, gelu}});
}

}  // namespace greta::kernels
