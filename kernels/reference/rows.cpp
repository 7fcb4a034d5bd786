#include "kernels/reference/rows.hpp"

#include <algorithm>

namespace greta::kernels::rows {

double merges(std::int64_t n) {
  const auto count = static_cast<double>(n);
  return std::min(count - 1, 17 + std::max(8.0, count / 256));
}

double sum_error(std::int64_t n) {
  return u * std::min(static_cast<double>(n), 11 + 2 * merges(n));
}

std::vector<double> row_of(const HostTensor& tensor, std::int64_t row) {
  std::vector<double> values(static_cast<std::size_t>(tensor.spec.cols));
  const auto first = static_cast<std::size_t>(row) * values.size();
  load_elements(tensor.spec.dtype, tensor.data.data(), first, values.size(), values.data());
  return values;
}

}  // namespace greta::kernels::rows
