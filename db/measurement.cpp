#include "db/measurement.hpp"

#include <algorithm>

namespace greta::db {

double Measurement::spread_percent() const {
  if (samples_us.size() < 2 || median_us <= 0) return 0;
  auto sorted = samples_us;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double quantile) {
    return sorted[static_cast<std::size_t>(quantile * static_cast<double>(sorted.size() - 1))];
  };
  return 100 * (at(0.9) - at(0.1)) / median_us;
}

}  // namespace greta::db
