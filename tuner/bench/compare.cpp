#include "tuner/bench/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace greta {
namespace {

constexpr double confidence_of_all = 0.95;
// Code that lies elsewhere in another process makes calls of some nanoseconds slower by a tenth.
constexpr double least_us = 0.02;
constexpr std::size_t most_groups = 18;  // more samples make groups larger

/// The largest rank r for which the r-th smallest of the m n differences is a lower bound of the
/// shift with this one-sided error; nothing where even the smallest is not. Exact: the number of
/// orders of m and n values with each sum of ranks.
std::optional<std::size_t> bounding_rank(std::size_t m, std::size_t n, double error) {
  // ways[j][u]: orders of i old and j new values in which u pairs have the new one first.
  const std::size_t most = m * n;
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(most + 1, 0));
  for (auto& row : ways) row[0] = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    for (std::size_t j = 1; j <= n; ++j) {
      for (std::size_t u = i * j + 1; u-- > 0;) {
        // The last of all is a new value, which no old one follows, or an old one, behind j new.
        ways[j][u] = ways[j - 1][u] + (u >= j ? ways[j][u - j] : 0);
      }
    }
  }
  double all = 0;
  for (const double count : ways[n]) all += count;
  double below = 0;
  std::optional<std::size_t> rank;
  for (std::size_t u = 0; u < most; ++u) {
    below += ways[n][u] / all;
    if (below > error) break;
    rank = u + 1;
  }
  return rank;
}

// Logarithms of the fastest sample of each group of blocks that follow each other.
std::vector<double> fastest(const std::vector<std::vector<double>>& blocks) {
  std::size_t samples = 0;
  for (const auto& block : blocks) samples += block.size();
  const std::size_t least = (samples + most_groups - 1) / most_groups;
  constexpr double none = std::numeric_limits<double>::infinity();
  std::vector<double> values;
  double best = none;
  std::size_t count = 0;
  for (const auto& block : blocks) {
    for (const double us : block) best = us > 0 ? std::min(best, us) : best;
    count += block.size();
    if (count < least || best == none) continue;
    values.push_back(std::log(best));
    best = none;
    count = 0;
  }
  return values;
}

double median_of_all(const std::vector<std::vector<double>>& blocks) {
  std::vector<double> all;
  for (const auto& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return median(std::move(all));
}

Interval shift_of(const std::vector<double>& base, const std::vector<double>& fresh,
                  double confidence) {
  std::vector<double> differences;
  for (const double b : base) {
    for (const double f : fresh) differences.push_back(f - b);
  }
  std::sort(differences.begin(), differences.end());
  Interval interval{0, std::numeric_limits<double>::infinity(), 1};
  if (differences.empty()) return interval;
  interval.estimate = std::exp(median(differences));
  if (const auto rank = bounding_rank(base.size(), fresh.size(), (1 - confidence) / 2)) {
    interval.low = std::exp(differences[*rank - 1]);
    interval.high = std::exp(differences[differences.size() - *rank]);
  }
  return interval;
}

using Key = std::array<std::string, 8>;

std::map<Key, CsvRow> by_key(const std::vector<CsvRow>& rows) {
  std::map<Key, CsvRow> found;
  for (const auto& row : rows) {
    if (row.origin == "trial" || row.origin == "stand_in") continue;
    const Key key{row.op,         row.dtype,   row.out_dtype, row.problem,
                  row.attributes, row.backend, row.origin,    row.cache};
    const auto [entry, fresh] = found.try_emplace(key, row);
    if (fresh) continue;
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(entry->second.blocks_us, row.blocks_us);
    append(entry->second.control_us, row.control_us);
    if (row.status != "ok") entry->second.status = row.status;
  }
  return found;
}

// Regressions first, the worst of them first of all; then what is faster, unsure and unchanged.
bool matters_more(const RowChange& a, const RowChange& b) {
  if (a.broke != b.broke) return a.broke;
  if (a.finding != b.finding) return a.finding < b.finding;
  return std::abs(std::log(a.change.estimate)) > std::abs(std::log(b.change.estimate));
}

}  // namespace

std::string_view to_string(Finding finding) {
  switch (finding) {
    case Finding::slower:
      return "slower";
    case Finding::faster:
      return "faster";
    case Finding::same:
      return "same";
    case Finding::unsure:
      return "can't tell";
  }
  return "unknown";
}

Interval change_of(const Samples& base, const Samples& fresh, double confidence) {
  const auto before = fastest(base.blocks_us), after = fastest(fresh.blocks_us);
  Interval change = shift_of(before, after, confidence);
  const double medians = median_of_all(fresh.blocks_us) / median_of_all(base.blocks_us);
  if (!(medians > 0) || !std::isfinite(medians)) return change;
  if (before.empty() || after.empty()) change.estimate = medians;
  const double least = std::min(change.estimate, medians);
  const double most = std::max(change.estimate, medians);
  // What the machine explains is no change of the code.
  const double machine = median(fresh.control_us) / median(base.control_us);
  const bool controlled = machine > 0 && std::isfinite(machine);
  const double slower = controlled ? std::max(1.0, machine) : 1;
  const double faster = controlled ? std::min(1.0, machine) : 1;
  change.low /= slower;
  change.high /= faster;
  change.estimate = 1;
  if (least > slower) change.estimate = least / slower;
  if (most < faster) change.estimate = most / faster;
  return change;
}

Finding judge(const Interval& change, double margin) {
  const double far = 1 + margin, near = 1 + margin / 2;
  if (change.low > near && change.estimate > far) return Finding::slower;
  if (change.high < 1 / near && change.estimate < 1 / far) return Finding::faster;
  if (change.low >= 1 / far && change.high <= far) return Finding::same;
  return Finding::unsure;
}

int BaselineComparison::regressions() const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [](const RowChange& row) {
    return row.broke || row.finding == Finding::slower;
  }));
}

BaselineComparison compare_baselines(const std::vector<CsvRow>& base,
                                     const std::vector<CsvRow>& fresh, double margin) {
  const auto before = by_key(base), after = by_key(fresh);
  BaselineComparison result;
  for (const auto& [key, row] : before) {
    const auto found = after.find(key);
    if (found == after.end()) {
      result.only_base.push_back(row);
      continue;
    }
    RowChange change{row, found->second, {}, Finding::unsure, false};
    change.broke = row.status == "ok" && found->second.status != "ok";
    result.rows.push_back(change);
  }
  for (const auto& [key, row] : after) {
    if (before.count(key) == 0) result.only_fresh.push_back(row);
  }
  result.confidence = 1 - (1 - confidence_of_all) /
                              static_cast<double>(std::max<std::size_t>(1, result.rows.size()));
  for (auto& row : result.rows) {
    row.change = change_of(samples_of(row.base), samples_of(row.fresh), result.confidence);
    if (!row.broke) row.finding = judge(row.change, margin);
    const double us = median_of_all(row.fresh.blocks_us) - median_of_all(row.base.blocks_us);
    const bool told = row.finding == Finding::slower || row.finding == Finding::faster;
    if (told && std::abs(us) < least_us) row.finding = Finding::same;
  }
  std::stable_sort(result.rows.begin(), result.rows.end(), matters_more);
  return result;
}

Samples samples_of(const CsvRow& row) {
  return {row.blocks_us, row.control_us};
}

std::string row_name(const CsvRow& row) {
  std::string name = row.op;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) name += " " + part;
  };
  add(row.dtype);
  if (!row.out_dtype.empty() && row.out_dtype != row.dtype) add("to " + row.out_dtype);
  add(row.problem);
  add(row.attributes);
  if (row.origin != "measured") name += ", " + row.origin;
  return name;
}

}  // namespace greta
