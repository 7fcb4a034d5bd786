#include "db/distance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/catalog.hpp"

namespace greta::db {
namespace {

using Extents = std::span<const std::int64_t>;

/// ln of an extent; 0 counts as half of 1, so that flags have a distance.
double logarithm(std::int64_t extent) {
  return std::log(extent > 0 ? static_cast<double>(extent) : 0.5);
}

/// Adds up `term` of ln(wanted / recorded) for each dimension.
template <typename Term>
double sum_of(const Problem& wanted, Extents recorded, const Term& term) {
  double sum = 0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    sum += term(logarithm(wanted.dims[i].second) - logarithm(recorded[i]));
  }
  return sum;
}

double sum_of_logs(const Problem& wanted, Extents recorded) {
  return sum_of(wanted, recorded, [](double ratio) { return std::abs(ratio); });
}

double euclidean(const Problem& wanted, Extents recorded) {
  return std::sqrt(sum_of(wanted, recorded, [](double ratio) { return ratio * ratio; }));
}

double largest(const Problem& wanted, Extents recorded) {
  double most = 0;
  sum_of(wanted, recorded, [&](double ratio) { return most = std::max(most, std::abs(ratio)); });
  return most;
}

double prefer_smaller(const Problem& wanted, Extents recorded) {
  return sum_of(wanted, recorded, [](double ratio) { return ratio > 0 ? ratio : -2 * ratio; });
}

double prefer_larger(const Problem& wanted, Extents recorded) {
  return sum_of(wanted, recorded, [](double ratio) { return ratio > 0 ? 2 * ratio : -ratio; });
}

/// Whether people vary a dimension at run time, and not with the model.
bool varies(std::string_view name) {
  constexpr std::string_view names[] = {"m", "rows", "tokens", "q", "kv", "batch"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

template <int numerator, int denominator>
double run_time_weighted(const Problem& wanted, Extents recorded) {
  double sum = 0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const double ratio = std::abs(logarithm(wanted.dims[i].second) - logarithm(recorded[i]));
    sum += varies(wanted.dims[i].first) ? ratio * numerator / denominator : ratio;
  }
  return sum;
}

/// Of the number of elements that all dimensions span: a workgroup's share of the work.
double volume(const Problem& wanted, Extents recorded) {
  return std::abs(sum_of(wanted, recorded, [](double ratio) { return ratio; }));
}

/// Of the least work: FLOPs and bytes.
double work(const Problem& wanted, Extents recorded) {
  const auto* kernel = find_template(wanted.op);
  Problem other = wanted;
  for (std::size_t i = 0; i < recorded.size(); ++i) other.dims[i].second = recorded[i];
  if (kernel == nullptr || !check_problem(*kernel, wanted) || !check_problem(*kernel, other)) {
    return std::numeric_limits<double>::infinity();
  }
  const Work a = kernel->work(wanted), b = kernel->work(other);
  return std::abs(std::log((a.flops + 1) / (b.flops + 1))) +
         std::abs(std::log((a.bytes + 1) / (b.bytes + 1)));
}

}  // namespace

const std::vector<ShapeDistance>& shape_distances() {
  static const std::vector<ShapeDistance> list = {
      {"euclidean", "root of the sum of squares of ln of the dimensions' ratios", euclidean},
      {"sum", "sum of |ln| of the dimensions' ratios", sum_of_logs},
      {"largest", "the largest of them", largest},
      {"run_time_2", "sum, dimensions that vary at run time twice", run_time_weighted<2, 1>},
      {"run_time_4", "sum, dimensions that vary at run time four times", run_time_weighted<4, 1>},
      {"run_time_half", "sum, dimensions that vary at run time half", run_time_weighted<1, 2>},
      {"smaller", "sum, twice where the recorded extent is larger", prefer_smaller},
      {"larger", "sum, twice where the recorded extent is smaller", prefer_larger},
      {"volume", "|ln| of the ratio of the products of all dimensions", volume},
      {"work", "|ln| of the ratio of FLOPs, and of bytes", work},
  };
  return list;
}

double shape_distance(const Problem& wanted, const Problem& recorded) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool comparable = wanted.op == recorded.op && wanted.dtype == recorded.dtype &&
                          wanted.out_dtype == recorded.out_dtype &&
                          wanted.attributes == recorded.attributes &&
                          wanted.dims.size() == recorded.dims.size();
  if (!comparable) return infinity;
  if (wanted.dims == recorded.dims) return 0;
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < wanted.dims.size(); ++i) {
    if (wanted.dims[i].first != recorded.dims[i].first) return infinity;
    extents.push_back(recorded.dims[i].second);
  }
  return shape_distances().front().between(wanted, extents);
}

}  // namespace greta::db
