#include "tuner/bench/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "runtime/device/text/printable.hpp"
#include "tuner/bench/shift.hpp"

namespace greta::tuner {
namespace {

constexpr double confidence_of_all = 0.95;
// Smaller changes of calls are not reported: in another process the code lies at other addresses.
// Many processes average that out, but not the effect of another position in the program.
constexpr double least_us = 0.02;
constexpr double least_us_of_many = 0.002;
constexpr double most_machine = 3;       // controls that differ by more did different work
constexpr std::size_t most_groups = 24;  // groups contain more blocks if there are more
constexpr std::size_t groups_kept = 12;  // the fastest, enough for thousands of rows
// Ratio by which results for the machine and the runtime may differ between processes, because
// threads and memory are placed differently. Samples of enough processes contain that variation.
constexpr double between_processes = 1.25;
constexpr std::size_t enough_processes = 6;
// Upper bound of the difference of launch times between processes on a GPU, in µs, for kernels with
// samples of too few processes.
constexpr double launch_us = 0.4;
// Upper bound of log(kernel slowdown) / log(slowdown of the controls) under load.
constexpr double most_reaction = 1.8;

double fastest(const std::vector<double>& samples) {
  return *std::min_element(samples.begin(), samples.end());
}

using Blocks = std::vector<std::vector<double>>;
using Groups = std::vector<double>;  // logarithm of the representative sample of each group

std::vector<double> all_of(Blocks::const_iterator first, Blocks::const_iterator last) {
  std::vector<double> all;
  for (; first != last; ++first) {
    std::copy_if(first->begin(), first->end(), std::back_inserter(all),
                 [](double us) { return us > 0; });
  }
  return all;
}

double median_of_all(const Blocks& blocks) {
  return median(all_of(blocks.begin(), blocks.end()));
}

// Combines every `size` consecutive blocks to a group.
Groups grouped(const Blocks& blocks, double (*typical)(const std::vector<double>&),
               std::size_t size) {
  Groups values;
  for (std::size_t at = 0; at + size <= blocks.size(); at += size) {
    const auto first = blocks.begin() + static_cast<std::ptrdiff_t>(at);
    const auto samples = all_of(first, first + static_cast<std::ptrdiff_t>(size));
    if (!samples.empty()) values.push_back(std::log(typical(samples)));
  }
  return values;
}

// Returns the logarithm of each block's median.
Groups medians_of(const Blocks& blocks) {
  return grouped(
      blocks, [](const std::vector<double>& block) { return median(block); }, 1);
}

std::size_t group_size(std::size_t blocks) {
  return std::max<std::size_t>(1, (blocks + most_groups - 1) / most_groups);
}

// Returns each block's CPU time divided by that of the control beside it; nothing if either is
// unknown.
Groups processor_groups(const Samples& samples) {
  const auto& controls = samples.cpu_control_us;
  if (samples.cpu_us.empty() || samples.cpu_us.size() != controls.size()) return {};
  auto blocks = samples.cpu_us;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!(controls[i] > 0)) return {};
    for (double& us : blocks[i]) us /= controls[i];
  }
  return medians_of(blocks);
}

// Keeps the same fraction of both, the fastest groups, so that the smaller one has groups_kept.
void keep_fastest(Groups& a, Groups& b) {
  const double smaller = static_cast<double>(std::min(a.size(), b.size()));
  if (smaller <= groups_kept) return;
  for (Groups* groups : {&a, &b}) {
    std::sort(groups->begin(), groups->end());
    const double size = static_cast<double>(groups->size());
    groups->resize(static_cast<std::size_t>(std::round(size * groups_kept / smaller)));
  }
}

// Returns the change of the controls, in groups of the same size as those of the samples; 1 if one
// side has none.
double control_change(const std::vector<double>& base, const std::vector<double>& fresh,
                      std::size_t size) {
  const auto groups = [size](const std::vector<double>& control_us) {
    Blocks blocks;
    blocks.reserve(control_us.size());
    for (const double us : control_us) blocks.push_back({us});
    return grouped(blocks, fastest, size);
  };
  Groups before = groups(base), after = groups(fresh);
  if (before.empty() || after.empty()) return 1;
  keep_fastest(before, after);
  return std::exp(median(after) - median(before));
}

// Moves an interval and its estimate towards 1 by the factors that other causes explain: `slower`
// (at least 1) and `faster` (at most 1).
void explain(Interval& change, double slower, double faster) {
  const double estimate = change.estimate;
  change.low /= slower;
  change.high /= faster;
  change.estimate = 1;
  if (estimate > slower) change.estimate = estimate / slower;
  if (estimate < faster) change.estimate = estimate / faster;
}

// Removes a change of the machine's speed, which is not a change of the code. `reaction` is the
// ratio of the logarithmic changes of the timed work and of the controls.
void explain_by_machine(Interval& change, double machine, double reaction) {
  if (machine <= 1 / most_machine || machine >= most_machine) return;
  explain(change, std::pow(std::max(1.0, machine), reaction),
          std::pow(std::min(1.0, machine), reaction));
}

struct Timed {
  const Blocks& blocks_us;
  const std::vector<double>& control_us;
};

// Groups have the same size on both sides, because the minimum decreases with the number of
// samples.
Interval fastest_change(const Timed& base, const Timed& fresh, double confidence, double reaction) {
  const std::size_t size = group_size(std::max(base.blocks_us.size(), fresh.blocks_us.size()));
  Groups before = grouped(base.blocks_us, fastest, size);
  Groups after = grouped(fresh.blocks_us, fastest, size);
  keep_fastest(before, after);
  Interval change = shift_interval(before, after, confidence);
  explain_by_machine(change, control_change(base.control_us, fresh.control_us, size), reaction);
  return change;
}

// Returns whether the 95 % interval of the median of groups is at most this far from its middle.
bool known_to(double fraction, const Groups& groups) {
  constexpr std::size_t least = 6;  // minimum for a 95 % interval
  if (groups.size() < least) return false;
  const Interval interval = median_interval(groups, confidence_of_all);
  return interval.high - interval.low <= 2 * fraction;
}

// An interrupted benchmark has fewer samples, but is not a failure.
bool failed(const MeasuredResult& result) {
  return result.failure &&
         (result.failure->status != Status::unavailable || result.samples.blocks_us.empty());
}

// The properties that results must share to be compared, in the order of the listing.
using Key = std::tuple<ProblemWords, std::string, std::string_view, std::string, CacheState>;

Key key_of(const Subject& subject) {
  const auto origin = subject.from_database() ? ResultOrigin::winner : subject.origin;
  const bool chosen = origin == ResultOrigin::chosen && subject.config;
  return {subject.words(), subject.backend, to_string(origin), chosen ? subject.config->text() : "",
          subject.cache};
}

void append(Samples& samples, const Samples& more) {
  for (const auto member : {&Samples::blocks_us, &Samples::cpu_us}) {
    (samples.*member).insert((samples.*member).end(), (more.*member).begin(), (more.*member).end());
  }
  for (const auto member : {&Samples::control_us, &Samples::cpu_control_us}) {
    (samples.*member).insert((samples.*member).end(), (more.*member).begin(), (more.*member).end());
  }
}

std::map<Key, MeasuredResult> by_key(const std::vector<MeasuredResult>& results) {
  std::map<Key, MeasuredResult> found;
  for (const auto& result : results) {
    const ResultOrigin origin = result.subject.origin;
    if (origin == ResultOrigin::trial || origin == ResultOrigin::stand_in) continue;
    const auto [entry, fresh] = found.try_emplace(key_of(result.subject), result);
    if (fresh) continue;
    MeasuredResult& all = entry->second;
    append(all.samples, result.samples);
    const bool counted = all.processes > 0 && result.processes > 0;
    all.processes = counted ? all.processes + result.processes : 0;
    if (failed(result)) all.failure = result.failure;
  }
  return found;
}

bool told(Finding finding) {
  return finding == Finding::slower || finding == Finding::faster;
}

void decide(ResultChange& row, double confidence, double margin) {
  row.change = change_of(row.base, row.fresh, confidence);
  if (row.broke) return;
  const Samples &base = row.base.samples, &fresh = row.fresh.samples;
  const bool of_machine = row.base.subject.origin == ResultOrigin::measured;
  row.finding = judge(row.change, margin);
  // Calls are measured differently in separate processes.
  if (of_machine && (row.base.processes == 0) != (row.fresh.processes == 0)) {
    row.finding = Finding::unsure;
    return;
  }
  const bool of_few = std::min(row.base.processes, row.fresh.processes) < enough_processes;
  if (told(row.finding) && of_few) {
    const double slower =
        of_machine ? between_processes : 1 + launch_us / median_of_all(base.blocks_us);
    Interval rest = row.change;
    explain(rest, slower, 1 / slower);
    row.finding = judge(rest, margin);
    if (!told(row.finding)) row.change = rest;
  }
  for (const auto processor : {fastest_processor_change_of, processor_change_of}) {
    if (row.finding != Finding::unsure) break;
    const auto change = processor(base, fresh, confidence);
    if (!change) continue;
    row.change = *change;
    row.finding = judge(*change, margin);
    row.by_processor = true;
  }
  const double us = median_of_all(fresh.blocks_us) - median_of_all(base.blocks_us);
  const double least = of_few ? least_us : least_us_of_many;
  if (told(row.finding) && !row.by_processor && std::abs(us) < least) {
    row.finding = Finding::same;
  }
}

// Orders regressions first, the worst of them at the top, then faster, undecided and unchanged
// results.
bool matters_more(const ResultChange& a, const ResultChange& b) {
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
      return "inconclusive";
  }
  return "unknown";
}

bool settled(const Samples& samples) {
  const std::size_t size = group_size(samples.blocks_us.size());
  return known_to(0.01, grouped(samples.blocks_us, fastest, size)) ||
         known_to(0.01, processor_groups(samples));
}

bool settled_in_processes(const Samples& samples) {
  return known_to(0.02, medians_of(samples.blocks_us));
}

Interval change_of(const Samples& base, const Samples& fresh, double confidence) {
  return fastest_change({base.blocks_us, base.control_us}, {fresh.blocks_us, fresh.control_us},
                        confidence, 1);
}

Interval process_change_of(const Samples& base, const Samples& fresh, double confidence) {
  Interval change =
      shift_interval(medians_of(base.blocks_us), medians_of(fresh.blocks_us), confidence);
  if (base.control_us.empty() || fresh.control_us.empty()) return change;
  explain_by_machine(change, median(fresh.control_us) / median(base.control_us), 1);
  return change;
}

Interval change_of(const MeasuredResult& base, const MeasuredResult& fresh, double confidence) {
  const auto by_medians = [](const MeasuredResult& result) {
    return result.subject.origin != ResultOrigin::measured && result.samples.cpu_us.empty() &&
           result.processes >= enough_processes;
  };
  return by_medians(base) && by_medians(fresh)
             ? process_change_of(base.samples, fresh.samples, confidence)
             : change_of(base.samples, fresh.samples, confidence);
}

std::optional<Interval> fastest_processor_change_of(const Samples& base, const Samples& fresh,
                                                    double confidence) {
  if (base.cpu_us.empty() || fresh.cpu_us.empty()) return std::nullopt;
  if (base.cpu_control_us.empty() || fresh.cpu_control_us.empty()) return std::nullopt;
  return fastest_change({base.cpu_us, base.cpu_control_us}, {fresh.cpu_us, fresh.cpu_control_us},
                        confidence, most_reaction);
}

std::optional<Interval> processor_change_of(const Samples& base, const Samples& fresh,
                                            double confidence) {
  const auto before = processor_groups(base), after = processor_groups(fresh);
  if (before.empty() || after.empty()) return std::nullopt;
  Interval change = shift_interval(before, after, confidence);
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
  return static_cast<int>(std::count_if(
      changes.begin(), changes.end(), [](const ResultChange& row) { return row.is_regression(); }));
}

BaselineComparison compare_baselines(const std::vector<MeasuredResult>& base,
                                     const std::vector<MeasuredResult>& fresh, double margin) {
  const auto before = by_key(base), after = by_key(fresh);
  BaselineComparison result;
  for (const auto& [key, row] : before) {
    const auto found = after.find(key);
    if (found == after.end()) {
      result.only_base.push_back(row);
      continue;
    }
    ResultChange change{row, found->second, {}};
    change.broke = !failed(row) && failed(found->second);
    result.changes.push_back(change);
  }
  for (const auto& [key, row] : after) {
    if (before.count(key) == 0) result.only_fresh.push_back(row);
  }
  std::size_t tests = 0;
  for (const auto& row : result.changes) {
    tests += row.base.samples.cpu_us.empty() || row.fresh.samples.cpu_us.empty() ? 1 : 3;
  }
  result.confidence =
      1 - (1 - confidence_of_all) / static_cast<double>(std::max<std::size_t>(1, tests));
  for (auto& row : result.changes) decide(row, result.confidence, margin);
  std::stable_sort(result.changes.begin(), result.changes.end(), matters_more);
  return result;
}

std::string subject_text(const Subject& subject) {
  const ProblemWords words = subject.words();
  std::string text = words.op;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += " " + part;
  };
  add(words.dtype);
  if (words.out_dtype != words.dtype) add("to " + words.out_dtype);
  add(words.dims);
  add(words.attributes);
  if (subject.origin != ResultOrigin::measured)
    text += fmt::format(", {}", to_string(subject.origin));
  if (subject.origin == ResultOrigin::chosen && subject.config)
    text += " " + subject.config->shown();
  return text;
}

std::string benchmark_name(const Subject& subject) {
  Subject problem = subject;
  if (subject.from_database()) problem.origin = ResultOrigin::measured;  // whose text has no origin
  std::string name = subject_text(problem);
  if (subject.from_database()) name += ", tuned";
  name += ", " + subject.backend;
  if (subject.cache == CacheState::warm) name += ", warm";
  return device::one_line(name);
}

}  // namespace greta::tuner
