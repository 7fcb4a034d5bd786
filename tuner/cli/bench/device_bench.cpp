#include "tuner/cli/bench/device_bench.hpp"

#include <fmt/format.h>

#include "kernels/catalog.hpp"
#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/cli/checks.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/safety.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/report/format.hpp"

namespace greta {

DeviceBench::DeviceBench(const ProbedDevice& device, TunedDb& db, const Options& options)
    : options_(options), db_(db) {
  EvaluatorOptions evaluator;
  evaluator.device = device.info.id();
  evaluator.cache_directory = default_cache_directory();
  evaluator.seed = options.kernels.seed;
  evaluator.avoid = avoided_on(device.info, db, options.allow_unsafe);
  checker_ = std::make_unique<WorkerEvaluator>(std::vector<std::string>{"/proc/self/exe", "worker"},
                                               evaluator);
  OpenOptions open;
  open.cache_directory = evaluator.cache_directory;
  device_ = open_device(device.info.id(), open).value();
  learn_ceilings(db);
  kernels_.emplace(*device_, *checker_, options_.kernels);
}

void DeviceBench::learn_ceilings(TunedDb& db) {
  auto& ceilings = options_.kernels.ceilings;
  ceilings = db.ceilings(info().fingerprint());
  if (complete(ceilings, info())) return;
  try {
    ceilings = checker_->measure_ceilings();
    db.set_ceilings(info(), ceilings);
  } catch (const Error& error) {
    ceilings.clear();
    notes_.push_back(
        fmt::format("{}: no ceilings, so no share of the roofline: {}", info().id(), error.what()));
  }
}

std::optional<Config> DeviceBench::winner_of(const Problem& problem, const Space& space) {
  const auto found = db_.find_winner(info().fingerprint(), problem.key(), options_.kernels.cold);
  if (found && space.valid(found->winner.config)) return found->winner.config;
  if (found) {
    notes_.push_back(fmt::format("{}: its winner is not valid on {} any more; its default runs",
                                 problem.key(), info().id()));
  } else {
    ++untuned_;
  }
  return std::nullopt;
}

void DeviceBench::add_problem(const PresetProblem& listed, std::vector<Benchmark>& list) {
  const Problem& problem = listed.problem;
  try {
    check_fits(problem, info(), {});
    const KernelTemplate& kernel_template = *find_template(problem.op);
    const Config fallback = kernel_template.default_config(problem, info());
    std::optional<Config> winner;
    if (options_.winners) winner = winner_of(problem, kernel_template.space(problem, info()));
    if (winner) list.push_back(kernels_->make(problem, *winner, "winner"));
    if (!winner || options_.defaults) list.push_back(kernels_->make(problem, fallback, "default"));
  } catch (const CommandError& error) {  // too large
    notes_.push_back(
        fmt::format("{}: left out on {}: {}", problem.key(), info().id(), error.what()));
  } catch (const Error& error) {
    notes_.push_back(
        fmt::format("{}: left out on {}: {}", problem.key(), info().id(), error.what()));
  }
}

std::vector<Benchmark> DeviceBench::benchmarks(const Preset& preset) {
  auto list = platform_benchmarks(*device_, preset.platform);
  for (auto& benchmark : runtime_benchmarks(*device_, preset.runtime)) {
    list.push_back(std::move(benchmark));
  }
  for (const auto& listed : preset.problems) add_problem(listed, list);
  if (untuned_ > 0) {
    notes_.push_back(fmt::format("{} of {} not tuned on {}; defaults run", untuned_,
                                 format_count(preset.problems.size(), "problem"), info().id()));
  }
  return list;
}

}  // namespace greta
