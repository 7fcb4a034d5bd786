#include <cmath>

#include "kernels/reference/activation.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
std::unique_ptr<Reference> silu_mul_reference(const Problem& problem,
                                              const std::vector<HostTensor>& inputs,
                                              std::uint64_t) {
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("rows"),
                       problem.dim("cols")};
  const bool packed = problem.attribute("layout", "separate") == "packed";
  const auto product = [type = out.dtype, cols = out.cols, packed,
                        gates = keep_tensor(inputs, packed ? "x" : "gate"),
                        ups = keep_tensor(inputs, packed ? "x" : "up")](std::int64_t row,
                                                                        std::int64_t col) {
    const auto at = static_cast<std::size_t>((packed ? 2 : 1) * row * cols + col);
    const double gate = gates->at(at);
    const double up = ups->at(at + static_cast<std::size_t>(packed ? cols : 0));
    const double gated = activate(ActivationFunction::silu, gate), value = gated * up;
    const double of_gate = activation_error(ActivationFunction::silu, gate);
    if (std::isinf(up) && std::abs(gated) <= of_gate + 0x1p-126) return reference::anything;
    const double error = of_gate * std::abs(up);
    // A factor below 2^-126 may be flushed to 0. rounded() covers flushing of the product.
    const double flushed = (std::abs(gated) + std::abs(up)) * 0x1p-126;
    return rounded(type, value, error + std::abs(value) * 0x1p-24 + flushed);
  };
  return elements_reference({{out, product}});
}

}  // namespace greta::kernels
