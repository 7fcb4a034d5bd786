#include "tuner/cli/bench/gates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/cli/bench/entries.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

// A name for a problem of which nothing runs.
std::string name_without_benchmark(const Problem& problem) {
  Benchmark benchmark;
  benchmark.subject.problem = problem;
  return benchmark.name();
}

const NamedResult* row_of(const std::vector<NamedResult>& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const NamedResult& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

// Of an error, the largest of a problem counts, and of everything else that of the fastest.
bool counts_more(const Gate& gate, const MeasuredResult& a, const MeasuredResult& b) {
  if (a.failure.has_value() != b.failure.has_value()) return b.failure.has_value();
  if (gate.measure == Gate::Measure::error) return a.verdict.ratio() > b.verdict.ratio();
  return a.us.median < b.us.median;
}

}  // namespace

Gates::Gates(const Preset& preset, bool cold) : cache_(cold ? CacheState::cold : CacheState::warm) {
  for (const PresetProblem& listed : preset.problems) {
    for (const Gate& gate : listed.expect) {
      if (gate.reference != Gate::Reference::file) continue;
      const auto refuse = [&](const std::string& why) {
        throw CommandError(exit_usage, fmt::format("{}: \"{}\": {}", listed.where, gate.text, why));
      };
      const auto [entry, fresh] = baselines_.try_emplace(gate.file.string());
      if (fresh) {
        auto rows = read_csv(gate.file);
        if (!rows) refuse(rows.failure().message);
        entry->second = *std::move(rows);
      }
      if (!baseline_of(gate, listed.problem, cache_, entry->second)) {
        refuse(fmt::format("{} has no {} time of {}{}", gate.file.string(), cold ? "cold" : "warm",
                           listed.problem.key(),
                           gate.backend.empty() ? "" : " through " + gate.backend));
      }
    }
  }
}

void Gates::add(const DeviceBench& device, const std::string& prefix, const std::string& filter) {
  for (GatedProblem problem : device.gated()) {
    if (problem.subjects.empty()) {
      problem.subjects.push_back(name_without_benchmark(problem.listed->problem));
    }
    std::erase_if(problem.subjects,
                  [&](const std::string& name) { return !matches(filter, prefix + name); });
    if (!problem.subjects.empty()) gated_.push_back({device.info(), prefix, std::move(problem)});
  }
}

std::string Gates::reference_of(const OnDevice& gated, const Gate& gate) {
  if (gate.reference == Gate::Reference::fallback) return gated.prefix + gated.problem.fallback;
  if (gate.reference != Gate::Reference::variant) return {};
  const auto found = gated.problem.variants.find(gate.variant);
  return found == gated.problem.variants.end() ? std::string() : gated.prefix + found->second;
}

GateResult Gates::judge_one(const OnDevice& gated, const Gate& gate,
                            const std::vector<NamedResult>& rows,
                            const std::vector<const NamedResult*>& subjects) const {
  const NamedResult& subject = **std::min_element(
      subjects.begin(), subjects.end(),
      [&](const auto* a, const auto* b) { return counts_more(gate, a->result, b->result); });
  if (gate.reference == Gate::Reference::file) {
    const auto baseline =
        baseline_of(gate, gated.problem.listed->problem, cache_, baselines_.at(gate.file.string()));
    return tuner::judge(gate, subject.name, subject.result, &*baseline);
  }
  const std::string name = reference_of(gated, gate);
  if (gate.reference == Gate::Reference::variant && name.empty()) {
    GateResult none{.gate = gate, .benchmark = subject.name};
    none.why = fmt::format("variant {} does not run on {}", gate.variant, gated.info.id());
    return none;
  }
  const NamedResult* reference = row_of(rows, name);
  return tuner::judge(gate, subject.name, subject.result, reference ? &reference->result : nullptr);
}

std::vector<GateResult> Gates::judge(const std::vector<NamedResult>& rows, bool all) const {
  std::vector<GateResult> results;
  for (const OnDevice& gated : gated_) {
    std::vector<const NamedResult*> subjects;
    for (const std::string& name : gated.problem.subjects) {
      if (const auto* row = row_of(rows, gated.prefix + name)) subjects.push_back(row);
    }
    if (subjects.empty() && !all) continue;
    for (const Gate& gate : gated.problem.listed->expect) {
      if (!gate.concerns(gated.info)) continue;
      const std::string reference = reference_of(gated, gate);
      if (!all && !reference.empty() && row_of(rows, reference) == nullptr) continue;
      if (!subjects.empty()) {
        results.push_back(judge_one(gated, gate, rows, subjects));
        continue;
      }
      GateResult none{.gate = gate, .benchmark = gated.prefix + gated.problem.subjects.front()};
      none.why = gated.problem.skipped.empty() ? "it did not run" : gated.problem.skipped;
      results.push_back(std::move(none));
    }
  }
  return results;
}

void Gates::annotate(std::vector<NamedResult>& rows) const {
  for (const GateResult& result : judge(rows, false)) {
    for (NamedResult& row : rows) {
      if (row.name != result.benchmark) continue;
      std::string& expect = row.result.expect;
      expect += (expect.empty() ? "" : "; ") + gate_text(result);
    }
  }
}

void conclude_gates(const std::vector<GateResult>& results) {
  std::size_t failed = 0;
  for (const GateResult& result : results) {
    if (!result.failed()) continue;
    ++failed;
    tell(fmt::format("gate missed: {}: expected {}, {} {}", result.benchmark, result.gate.text,
                     result.outcome == GateOutcome::missed ? "measured" : "not measured:",
                     measured_text(result)));
  }
  if (failed == 0) return;
  throw CommandError(exit_regression,
                     fmt::format("{} of {} missed", failed,
                                 format_count(static_cast<std::int64_t>(results.size()), "gate")));
}

}  // namespace greta::tuner::cli
