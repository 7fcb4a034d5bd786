#include "tuner/bench/parts.hpp"

#include <algorithm>
#include <limits>

namespace greta::tuner {
namespace {

bool timed(const MeasuredResult& result) {
  return !result.failure && result.us.median > 0;
}

bool same_device(const MeasuredResult& a, const MeasuredResult& b) {
  return a.subject.backend == b.subject.backend && a.subject.device == b.subject.device;
}

/// Returns the fastest result of a problem on the device of `like`, or one that failed, or null.
const MeasuredResult* fastest(const std::vector<const MeasuredResult*>& results,
                              const Problem& problem, const MeasuredResult& like) {
  const MeasuredResult* best = nullptr;
  for (const MeasuredResult* one : results) {
    if (!(one->subject.problem == problem) || !same_device(*one, like)) continue;
    const bool better =
        best == nullptr || !timed(*best) || (timed(*one) && one->us.median < best->us.median);
    if (better) best = one;
  }
  return best;
}

/// Sets the times of parts whose results are known.
void add_up(PartsResult& row) {
  const auto known = [](const PartResult& part) { return timed(*part.result); };
  if (!timed(*row.fused) || !std::all_of(row.parts.begin(), row.parts.end(), known)) return;
  std::size_t blocks = row.fused->samples.blocks_us.size();
  for (const auto& [result, count] : row.parts) {
    row.parts_us += count * result->us.median;
    blocks = std::min(blocks, result->samples.blocks_us.size());
  }
  row.ratio = {.low = 0,
               .high = std::numeric_limits<double>::infinity(),
               .estimate = row.parts_us / row.fused->us.median};
  std::vector<double> together(blocks), fused(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    fused[i] = median(row.fused->samples.blocks_us[i]);
    for (const auto& [result, count] : row.parts) {
      together[i] += count * median(result->samples.blocks_us[i]);
    }
  }
  if (blocks < 2) return;
  const Interval paired = ratio_interval(together, fused, 0.95);
  row.ratio.low = paired.low;
  row.ratio.high = paired.high;
}

}  // namespace

std::vector<std::pair<Problem, int>> distinct_parts(const Operation& operation,
                                                    const Problem& problem) {
  std::vector<std::pair<Problem, int>> distinct;
  for (const Problem& part : operation.parts_of(problem)) {
    const auto known = std::find_if(distinct.begin(), distinct.end(),
                                    [&](const auto& one) { return one.first == part; });
    if (known == distinct.end()) {
      distinct.emplace_back(part, 1);
    } else {
      ++known->second;
    }
  }
  return distinct;
}

std::vector<PartsResult> compare_parts(const Catalog& catalog,
                                       const std::vector<PresetProblem>& problems,
                                       const std::vector<const MeasuredResult*>& results) {
  std::vector<PartsResult> rows;
  for (const PresetProblem& listed : problems) {
    if (!listed.parts) continue;
    std::vector<const MeasuredResult*> devices;  // one result of each
    for (const MeasuredResult* one : results) {
      const auto same = [&](const MeasuredResult* other) { return same_device(*one, *other); };
      if (!std::any_of(devices.begin(), devices.end(), same)) devices.push_back(one);
    }
    for (const MeasuredResult* device : devices) {
      PartsResult row;
      row.fused = fastest(results, listed.problem, *device);
      if (row.fused == nullptr) continue;
      bool complete = true;
      for (const auto& [part, count] :
           distinct_parts(catalog.at(listed.problem.op), listed.problem)) {
        const MeasuredResult* const found = fastest(results, part, *device);
        complete = complete && found != nullptr;
        if (found != nullptr) row.parts.push_back({found, count});
      }
      if (!complete || row.parts.empty()) continue;
      add_up(row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace greta::tuner
