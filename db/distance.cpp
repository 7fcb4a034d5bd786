#include "db/distance.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace greta::db {

double shape_distance(const Problem& wanted, std::span<const std::int64_t> recorded) {
  double sum = 0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const double ratio = std::log(static_cast<double>(wanted.dims[i].second)) -
                         std::log(static_cast<double>(recorded[i]));
    sum += ratio * ratio;
  }
  return std::sqrt(sum);
}

double shape_distance(const Problem& wanted, const Problem& recorded) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool comparable = wanted.op == recorded.op && wanted.dtype == recorded.dtype &&
                          wanted.out_dtype == recorded.out_dtype &&
                          wanted.attributes == recorded.attributes &&
                          wanted.dims.size() == recorded.dims.size();
  if (!comparable) return infinity;
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < wanted.dims.size(); ++i) {
    if (wanted.dims[i].first != recorded.dims[i].first) return infinity;
    extents.push_back(recorded.dims[i].second);
  }
  return shape_distance(wanted, extents);
}

}  // namespace greta::db
