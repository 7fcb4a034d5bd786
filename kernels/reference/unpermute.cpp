#include <cmath>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
std::unique_ptr<Reference> unpermute_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t) {
  using reference::u;
  const std::int64_t top_k = problem.dim("top_k"), dim = problem.dim("dim");
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("tokens"), dim};
  const auto summed = [top_k, dim, type = out.dtype, y = keep_tensor(inputs, "y"),
                       places = keep_tensor(inputs, "places"),
                       weights = keep_tensor(inputs, "weights")](std::int64_t row,
                                                                 std::int64_t col) {
    double sum = 0, size = 0, flushed = 0;
    for (std::int64_t k = 0; k < top_k; ++k) {
      const auto at = static_cast<std::size_t>(row * top_k + k);
      const double place = places->at(at);
      if (place < 0 || place >= static_cast<double>(y->spec.rows)) continue;
      const std::int64_t from = static_cast<std::int64_t>(place) * dim + col;
      const double weight = weights->at(at), value = y->at(static_cast<std::size_t>(from));
      sum += weight * value;
      size += std::abs(weight * value);
      // Devices may flush a factor or the product.
      flushed += 0x1p-126 * (1 + std::abs(weight) + std::abs(value));
    }
    return rounded(type, sum, size * u * static_cast<double>(top_k + 1) + flushed);
  };
  return elements_reference({{out, summed}});
}

}  // namespace greta::kernels
