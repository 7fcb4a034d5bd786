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
constexpr double most_machine = 3;       // controls that differ by more did other work
constexpr std::size_t most_groups = 18;  // more samples make groups larger
// Between runs with loads of 5 to 10 kernels of 0.2 to 0.6 ms changed 1.07 to 1.72 times as much as
// the controls beside them, as logarithms.
constexpr double most_reaction = 1.8;
constexpr std::size_t most_exact = 1000;  // pairs; beyond, ranks are as good as normal

/// How many standard deviations a normal value exceeds with this probability.
double normal_quantile(double error) {
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > error ? low : high) = middle;
  }
  return high;
}

/// The largest rank r for which the r-th smallest of the m n differences is a lower bound of the
/// shift with this one-sided error; nothing where even the smallest is not. Exact (the number of
/// orders of m and n values with each sum of ranks) up to about 30 values each.
std::optional<std::size_t> bounding_rank(std::size_t m, std::size_t n, double error) {
  if (m * n > most_exact) {
    const auto pairs = static_cast<double>(m * n);
    const double deviation = std::sqrt(pairs * static_cast<double>(m + n + 1) / 12);
    return static_cast<std::size_t>(
        std::max(1.0, std::floor(pairs / 2 - normal_quantile(error) * deviation)));
  }
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

double fastest(const std::vector<double>& samples) {
  return *std::min_element(samples.begin(), samples.end());
}

// Logarithms of what stands for each group of blocks that follow each other.
std::vector<double> grouped(const std::vector<std::vector<double>>& blocks,
                            double (*typical)(const std::vector<double>&),
                            std::size_t most = most_groups) {
  std::size_t samples = 0;
  for (const auto& block : blocks) samples += block.size();
  const std::size_t least = (samples + most - 1) / most;
  std::vector<double> values, group;
  std::size_t count = 0;
  for (const auto& block : blocks) {
    std::copy_if(block.begin(), block.end(), std::back_inserter(group),
                 [](double us) { return us > 0; });
    count += block.size();
    if (count < least || group.empty()) continue;
    values.push_back(std::log(typical(group)));
    group.clear();
    count = 0;
  }
  return values;
}

// Processor time of groups over that of controls; nothing where either is unknown.
std::vector<double> processor_groups(const Samples& samples) {
  const auto& controls = samples.cpu_control_us;
  if (samples.cpu_us.empty() || samples.cpu_us.size() != controls.size()) return {};
  auto blocks = samples.cpu_us;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!(controls[i] > 0)) return {};
    for (double& us : blocks[i]) us /= controls[i];
  }
  // Over the control beside it each block stands alone.
  return grouped(
      blocks, [](const std::vector<double>& group) { return median(group); }, 100'000);
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

// What was interrupted has fewer samples, and is right as far as it got.
bool failed(const CsvRow& row) {
  return row.status != "ok" && (row.status != "unavailable" || row.blocks_us.empty());
}

using Key = std::array<std::string, 8>;

std::map<Key, CsvRow> by_key(const std::vector<CsvRow>& rows) {
  std::map<Key, CsvRow> found;
  for (const auto& row : rows) {
    if (row.origin == "trial" || row.origin == "stand_in") continue;
    const std::string origin = row.from_database() ? "winner" : row.origin;
    const Key key{row.op,         row.dtype,   row.out_dtype, row.problem,
                  row.attributes, row.backend, origin,        row.cache};
    const auto [entry, fresh] = found.try_emplace(key, row);
    if (fresh) continue;
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(entry->second.blocks_us, row.blocks_us);
    append(entry->second.control_us, row.control_us);
    append(entry->second.cpu_us, row.cpu_us);
    append(entry->second.cpu_control_us, row.cpu_control_us);
    if (failed(row)) entry->second.status = row.status;
  }
  return found;
}

void decide(RowChange& row, double confidence, double margin) {
  const Samples base = samples_of(row.base), fresh = samples_of(row.fresh);
  row.change = change_of(base, fresh, confidence);
  if (row.broke) return;
  row.finding = judge(row.change, margin);
  if (row.finding == Finding::unsure) {
    if (const auto change = processor_change_of(base, fresh, confidence)) {
      row.change = *change;
      row.finding = judge(*change, margin);
      row.by_processor = true;
    }
  }
  const double us = median_of_all(row.fresh.blocks_us) - median_of_all(row.base.blocks_us);
  const bool told = row.finding == Finding::slower || row.finding == Finding::faster;
  if (told && !row.by_processor && std::abs(us) < least_us) row.finding = Finding::same;
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

bool settled(const Samples& samples) {
  constexpr std::size_t least = 6;  // of 95 %
  constexpr double close = 0.02;
  auto groups = processor_groups(samples);
  if (groups.empty()) groups = grouped(samples.blocks_us, fastest);
  if (groups.size() < least) return false;
  const Interval interval = median_interval(groups, confidence_of_all);
  return interval.high - interval.low <= 2 * close;
}

Interval change_of(const Samples& base, const Samples& fresh, double confidence) {
  const auto before = grouped(base.blocks_us, fastest), after = grouped(fresh.blocks_us, fastest);
  Interval change = shift_of(before, after, confidence);
  const double medians = median_of_all(fresh.blocks_us) / median_of_all(base.blocks_us);
  if (!(medians > 0) || !std::isfinite(medians)) return change;
  if (before.empty() || after.empty()) change.estimate = medians;
  const double least = std::min(change.estimate, medians);
  const double most = std::max(change.estimate, medians);
  // What the machine explains is no change of the code.
  const double machine = median(fresh.control_us) / median(base.control_us);
  const bool controlled = machine > 1 / most_machine && machine < most_machine;
  const double slower = controlled ? std::max(1.0, machine) : 1;
  const double faster = controlled ? std::min(1.0, machine) : 1;
  change.low /= slower;
  change.high /= faster;
  change.estimate = 1;
  if (least > slower) change.estimate = least / slower;
  if (most < faster) change.estimate = most / faster;
  return change;
}

std::optional<Interval> processor_change_of(const Samples& base, const Samples& fresh,
                                            double confidence) {
  const auto before = processor_groups(base), after = processor_groups(fresh);
  if (before.empty() || after.empty()) return std::nullopt;
  Interval change = shift_of(before, after, confidence);
  const double machine = median(fresh.cpu_control_us) / median(base.cpu_control_us);
  change.low /= std::pow(std::max(1.0, machine), most_reaction - 1);
  change.high /= std::pow(std::min(1.0, machine), most_reaction - 1);
  change.estimate /= std::pow(machine, (most_reaction - 1) / 2);
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
    RowChange change{row, found->second, {}};
    change.broke = !failed(row) && failed(found->second);
    result.rows.push_back(change);
  }
  for (const auto& [key, row] : after) {
    if (before.count(key) == 0) result.only_fresh.push_back(row);
  }
  std::size_t tests = 0;
  for (const auto& row : result.rows) {
    tests += row.base.cpu_us.empty() || row.fresh.cpu_us.empty() ? 1 : 2;
  }
  result.confidence =
      1 - (1 - confidence_of_all) / static_cast<double>(std::max<std::size_t>(1, tests));
  for (auto& row : result.rows) decide(row, result.confidence, margin);
  std::stable_sort(result.rows.begin(), result.rows.end(), matters_more);
  return result;
}

Samples samples_of(const CsvRow& row) {
  return {row.blocks_us, row.control_us, row.cpu_us, row.cpu_control_us};
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
