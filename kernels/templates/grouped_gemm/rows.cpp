#include "kernels/templates/grouped_gemm/rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/model/random.hpp"

namespace greta::kernels::grouped_gemm {
namespace {

/// Returns the groups' shares of the mean, or if skewed of the largest group.
std::vector<double> shares(std::int64_t groups, Routing routing) {
  std::vector<std::uint64_t> order(static_cast<std::size_t>(groups));
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::vector<double> list(order.size());
  if (routing == Routing::balanced) {
    for (const std::uint64_t group : order) {
      list[group] = 0.75 + 0.5 * static_cast<double>(mix64(group) >> 32) * 0x1p-32;
    }
    return list;
  }
  std::sort(order.begin(), order.end(),
            [](std::uint64_t x, std::uint64_t y) { return mix64(x) < mix64(y); });
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    list[order[rank]] = 1 / static_cast<double>(rank + 1);
  }
  return list;
}

}  // namespace

std::vector<std::int64_t> rows_of_groups(const gemm::RowGroups& shape, Routing routing) {
  const std::vector<double> parts = shares(shape.groups, routing);
  const auto m = static_cast<double>(shape.m);
  std::vector<std::int64_t> rows;
  if (shape.grouping == gemm::Grouping::masked) {
    const double most = routing == Routing::balanced ? m / 2 : m;
    for (const double part : parts) rows.push_back(std::llround(std::ceil(part * most)));
    for (std::int64_t& count : rows) count = std::min(count, shape.m);
    return rows;
  }
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
  double so_far = 0;
  std::int64_t start = 0;
  for (const double part : parts) {
    so_far += part;
    const std::int64_t end = std::min(shape.m, std::int64_t{std::llround(m * so_far / all)});
    rows.push_back(end - start);
    start = end;
  }
  rows.back() += shape.m - start;
  return rows;
}

}  // namespace greta::kernels::grouped_gemm
