#include "kernels/reference/elements.hpp"
#include "kernels/reference/norms.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {

std::unique_ptr<Reference> rmsnorm_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs, std::uint64_t) {
  const auto norm = std::make_shared<rows::RmsNorm>(problem, inputs);
  return elements_reference(
      {{rows::output(problem, "Y"), [norm](std::int64_t row, std::int64_t col) {
          const rows::Value y = norm->normalised(row, col);
          return rounded(norm->out(), y.value, y.error);
        }}});
}

}  // namespace greta::kernels
