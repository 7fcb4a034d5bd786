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
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = tensor.at(first + i);
  return values;
}

}  // namespace greta::kernels::rows
