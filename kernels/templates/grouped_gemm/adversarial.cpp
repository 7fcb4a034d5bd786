#include "kernels/templates/grouped_gemm/adversarial.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/templates/gemm/adversarial.hpp"
#include "kernels/templates/grouped_gemm/groups.hpp"
#include "kernels/templates/grouped_gemm/shape.hpp"

namespace greta::kernels::grouped_gemm {
namespace {

constexpr std::int64_t farthest = std::numeric_limits<std::int32_t>::max();

std::int64_t below(std::mt19937_64& random, std::int64_t bound) {
  return static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(bound)));
}

/// Returns whole parts, one more or one less, up to about `most`.
std::int64_t at_edge(std::int64_t part, std::int64_t most, std::mt19937_64& random) {
  const std::int64_t parts = below(random, std::max<std::int64_t>(0, most) / part + 2);
  return std::max<std::int64_t>(0, parts * part + below(random, 3) - 1);
}

/// Returns ends of contiguous groups: at random, next to whole parts, one row apart, or with all
/// rows in one group. The first ones may lie before all rows, the last ones past them, and rows may
/// be left over.
std::vector<std::int64_t> draw_ends(std::int64_t groups, std::int64_t m, std::int64_t part,
                                    std::mt19937_64& random) {
  std::vector<std::int64_t> ends(static_cast<std::size_t>(groups));
  enum { scattered, single_rows, one_group, kinds };
  const std::int64_t kind = below(random, kinds), first = below(random, groups);
  const std::int64_t left = below(random, 2) == 0 ? below(random, m + 1) : 0;  // over
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto group = static_cast<std::int64_t>(i);
    if (kind == scattered) ends[i] = below(random, m + 1);
    if (kind == single_rows) ends[i] = std::min(m, group + 1);
    if (kind == one_group) ends[i] = group < first ? 0 : m - left;
    if (kind == scattered && i > 0 && below(random, 4) == 0) ends[i] = ends[i - 1];
  }
  std::sort(ends.begin(), ends.end());
  for (std::size_t i = 0; kind == scattered && part > 1 && i < ends.size(); ++i) {
    const std::int64_t start = i == 0 ? 0 : ends[i - 1];
    if (below(random, 3) == 0)
      ends[i] = std::min(m, start + at_edge(part, ends[i] - start, random));
    ends[i] = std::max(ends[i], start);
  }
  if (kind == scattered && left == 0) ends.back() = m;
  for (std::int64_t& end : ends) {
    if (end == 0 && below(random, 3) == 0) end = below(random, 2) == 0 ? -1 : -farthest;
    if (end == m && below(random, 3) == 0) end = below(random, 2) == 0 ? m + 1 : farthest;
  }
  return ends;
}

/// Returns a number of rows of a masked group.
std::int64_t draw_rows(std::int64_t m, std::int64_t part, std::mt19937_64& random) {
  if (part > 1 && below(random, 3) == 0) return std::min(m, at_edge(part, m, random));
  const std::int64_t special[] = {0,        0,  1,        1, m, m, std::min(m, farthest - 1) + 1,
                                  farthest, -1, -farthest};
  const std::int64_t draw = below(random, 2 * std::ssize(special));
  return draw < std::ssize(special) ? special[draw] : below(random, m + 1);
}

}  // namespace

void harden(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed) {
  gemm::harden_product(shape_of(problem), inputs[0], inputs[1], seed);
  harden_rows(problem, inputs, seed);
}

void hide(HostTensor& a, const RowRange& rows) {
  for (std::int64_t i = rows.first * a.spec.cols; i < rows.end * a.spec.cols; ++i) {
    store_element(a.spec.dtype, a.data.data(), static_cast<std::size_t>(i),
                  std::numeric_limits<double>::quiet_NaN());
  }
}

void harden_rows(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed) {
  for (const RowRange& rows : draw_groups(problem, inputs, seed)) hide(inputs[0], rows);
}

std::vector<RowRange> draw_groups(const Problem& problem, std::vector<HostTensor>& inputs,
                                  const InputSeed& seed) {
  const gemm::Shape s = shape_of(problem);
  const auto numbers = std::find_if(inputs.begin(), inputs.end(), [](const HostTensor& tensor) {
    return is_rows_operand(tensor.spec.name);
  });
  const std::int64_t part = seed.part_of("m");
  std::mt19937_64 random(mix64(seed));
  const auto store = [&](std::int64_t group, std::int64_t rows) {
    store_element(DType::i32, numbers->data.data(), static_cast<std::size_t>(group),
                  static_cast<double>(rows));
  };
  if (s.grouping == gemm::Grouping::contiguous) {
    const std::vector<std::int64_t> ends = draw_ends(s.groups, s.m, part, random);
    for (std::int64_t g = 0; g < s.groups; ++g) store(g, ends[static_cast<std::size_t>(g)]);
    return {{std::clamp<std::int64_t>(ends.back(), 0, s.m), s.m}};
  }
  std::vector<RowRange> hidden;
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const std::int64_t rows = draw_rows(s.m, part, random);
    store(g, rows);
    hidden.push_back({g * s.m + std::clamp<std::int64_t>(rows, 0, s.m), (g + 1) * s.m});
  }
  return hidden;
}

}  // namespace greta::kernels::grouped_gemm
