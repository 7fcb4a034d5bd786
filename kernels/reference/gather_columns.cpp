#include <limits>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {

std::unique_ptr<Reference> gather_columns_reference(const Problem& problem,
                                                    const std::vector<HostTensor>& inputs,
                                                    std::uint64_t) {
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("rows"),
                       problem.dim("cols")};
  const auto gathered = [type = out.dtype, ids = keep_tensor(inputs, "ids"),
                         x = keep_tensor(inputs, "x")](std::int64_t row, std::int64_t col) {
    const double id = ids->at(static_cast<std::size_t>(col));
    if (id < 0 || id >= static_cast<double>(x->spec.cols)) {
      return Expected{std::numeric_limits<double>::quiet_NaN(), 0};
    }
    const std::int64_t from = row * x->spec.cols + static_cast<std::int64_t>(id);
    return converted(x->spec.dtype, type, x->at(static_cast<std::size_t>(from)));
  };
  return elements_reference({{out, gathered}});
}

}  // namespace greta::kernels
