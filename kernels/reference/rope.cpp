#include <cmath>
#include <limits>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
std::unique_ptr<Reference> rope_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs, std::uint64_t) {
  const std::int64_t heads = problem.dim("heads"), dim = problem.dim("dim");
  const bool in_place = problem.attribute("place", "out") == "in";
  const bool half = problem.attribute("style", "interleaved") == "half";
  const KeptTensor given = keep_tensor(inputs, "x");
  TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("tokens") * heads, dim};
  if (in_place) out = given->spec;
  const auto rotated = [=, type = problem.out_dtype, positions = keep_tensor(inputs, "positions"),
                        x = given, table = keep_tensor(inputs, "table"),
                        width = out.cols](std::int64_t out_row, std::int64_t out_col) {
    const std::int64_t index = out_row * width + out_col, row = index / dim, col = index % dim;
    const double position = positions->at(static_cast<std::size_t>(row / heads));
    if (position < 0 || position >= static_cast<double>(table->spec.rows)) {
      return Expected{std::numeric_limits<double>::quiet_NaN(), 0};
    }
    const std::int64_t pair = half ? col % (dim / 2) : col / 2;
    const bool second = half ? col >= dim / 2 : col % 2 == 1;
    const std::int64_t partner =
        half ? (second ? pair : pair + dim / 2) : (second ? col - 1 : col + 1);
    const auto at = [](std::int64_t r, std::int64_t c, std::int64_t cols) {
      return static_cast<std::size_t>(r * cols + c);
    };
    const auto table_row = static_cast<std::int64_t>(position);
    const double cosine = table->at(at(table_row, 2 * pair, dim));
    const double sine = table->at(at(table_row, 2 * pair + 1, dim));
    const double own = x->at(at(row, col, dim)) * cosine;
    const double other = x->at(at(row, partner, dim)) * (second ? sine : -sine);
    const double error = 2.001 * 0x1p-24 * (std::abs(own) + std::abs(other)) + 3 * 0x1p-126;
    return rounded(type, own + other, error);
  };
  return elements_reference({{out, rotated}});
}

}  // namespace greta::kernels
