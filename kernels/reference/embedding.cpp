#include <limits>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
std::unique_ptr<Reference> embedding_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t) {
  const std::int64_t dim = problem.dim("dim");
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("tokens"), dim};
  const auto looked_up = [dim, type = out.dtype, ids = keep_tensor(inputs, "ids"),
                          table = keep_tensor(inputs, "table")](std::int64_t row,
                                                                std::int64_t col) {
    const double id = ids->at(static_cast<std::size_t>(row));
    if (id < 0 || id >= static_cast<double>(table->spec.rows)) {
      return Expected{std::numeric_limits<double>::quiet_NaN(), 0};
    }
    const std::int64_t from = static_cast<std::int64_t>(id) * dim + col;
    return converted(table->spec.dtype, type, table->at(static_cast<std::size_t>(from)));
  };
  return elements_reference({{out, looked_up}});
}

}  // namespace greta::kernels
