#include "kernels/reference/product_operands.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "kernels/model/parallel.hpp"

namespace greta::kernels {

void ProductOperand::read(std::int64_t line, std::int64_t first, std::int64_t count,
                          double* to) const {
  lines->read(line, first, count, to);
  if (scales.values.empty()) return;
  scales.for_parts(line, first, count, [&](std::int64_t begin, std::int64_t end, double scale) {
    for (std::int64_t i = begin; i < end; ++i) to[i] *= scale;
  });
}

void ProductOperand::square(std::int64_t line, std::int64_t first, std::int64_t count,
                            double* values) const {
  if (scales.least_number > 0) {
    scales.for_parts(line, first, count, [&](std::int64_t begin, std::int64_t end, double scale) {
      const double least = scales.least_number * std::abs(scale);
      for (std::int64_t i = begin; i < end; ++i) {
        values[i] = std::max(std::abs(values[i]), least);
      }
    });
  }
  for (std::int64_t i = 0; i < count; ++i) values[i] *= values[i];
}

bool ProductOperand::finite(std::int64_t count, std::int64_t length) const {
  std::atomic<bool> finite = true;
  parallel_parts(count, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> line(static_cast<std::size_t>(length));
    for (std::int64_t i = first; i < last && finite; ++i) {
      read(i, 0, length, line.data());
      if (!std::all_of(line.begin(), line.end(), [](double x) { return std::isfinite(x); })) {
        finite = false;
      }
    }
  });
  return finite;
}

}  // namespace greta::kernels
