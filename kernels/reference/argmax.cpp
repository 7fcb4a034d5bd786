#include <cmath>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
std::unique_ptr<Reference> argmax_reference(const Problem& problem,
                                            const std::vector<HostTensor>& inputs, std::uint64_t) {
  const std::int64_t cols = problem.dim("cols");
  const TensorSpec out{"index", Role::output, DType::i32, problem.dim("rows"), 1};
  const auto winner = [cols, x = keep_tensor(inputs, "x")](std::int64_t row, std::int64_t) {
    const auto first = static_cast<std::size_t>(row * cols);
    std::size_t best = 0;
    for (std::size_t col = 1; col < static_cast<std::size_t>(cols); ++col) {
      const double value = x->at(first + col), largest = x->at(first + best);
      if (value > largest || (std::isnan(largest) && !std::isnan(value))) best = col;
    }
    return Expected{static_cast<double>(best), 0};
  };
  return elements_reference({{out, winner}});
}

}  // namespace greta::kernels
