#include "tuner/cli/bench/device_bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/bench/parts.hpp"
#include "tuner/bench/peer_benchmarks.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/profile/count_results.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {

DeviceBench::DeviceBench(const ProbedDevice& device, TunedDb& db, const Options& options)
    : options_(options), db_(db) {
  EvaluatorOptions& evaluator = evaluator_;
  evaluator.catalog = known_operations();
  evaluator.device = device.info.id();
  evaluator.cache_directory = default_cache_directory();
  evaluator.seed = options.kernels.seed;
  evaluator.stop = &stop_requested();
  evaluator.avoid = avoided_on(device.info, db, options.allow_unsafe);
  evaluator.vendor = options.vendor;
  checker_ = std::make_unique<WorkerEvaluator>(worker_command(), evaluator);
  OpenOptions open;
  open.cache_directory = evaluator.cache_directory;
  open.vendor = options.vendor;
  device_ = open_device(device.info.id(), open).value();
  learn_ceilings(db);
  options_.kernels.checker = checker_.get();
  const BlockProcesses::Options apart{evaluator.cache_directory, options_.kernels, evaluator.avoid,
                                      options.vendor, &stop_requested()};
  std::vector<std::string> command{"/proc/self/exe", "blocks"};
  for (const std::string& word : words_of_kernels()) command.push_back(word);
  calls_.emplace(command, device.info, apart);
  if (device.info.is_cpu()) kernels_apart_.emplace(command, device.info, apart);
  kernels_.emplace(*device_, checker_->catalog(), checker_->device(), options_.kernels);
  LookupOptions lookup;
  lookup.catalog = checker_->catalog();
  lookup.cold = options.kernels.cold;
  lookup.allow_unsafe = true;  // the features to avoid are already known
  lookup_.emplace(
      Lookup::open(info(), options.winners ? options.databases : LookupFiles::none(), lookup));
}

void DeviceBench::count(const std::vector<MeasuredResult*>& results) {
  if (results.empty()) return;
  tell(fmt::format(
      "{}: counting what {} on the hardware", info().id(),
      results.size() == 1 ? "a kernel does" : fmt::format("{} kernels do", results.size())));
  EvaluatorOptions counts = evaluator_;
  counts.device = info().address();
  counts.counters = true;
  try {
    WorkerEvaluator counting(worker_command(), counts);
    count_results(counting, options_.kernels.ceilings, options_.kernels.timeout_s, results);
  } catch (const Error& error) {
    if (error.status() == Status::interrupted) throw;
    for (MeasuredResult* const result : results) {
      if (!result->counters) result->no_counters = error.what();
    }
  }
  std::string why;
  for (const MeasuredResult* const result : results) {
    const Subject& subject = result->subject;
    if (result->counters) {
      db_.set_counters(info(), subject.problem.key(), *subject.config, *result->counters,
                       result->us.median);
    } else if (why != result->no_counters) {
      why = result->no_counters;
      tell(fmt::format("{}: no counters: {}", info().id(), why));
    }
  }
}

void DeviceBench::learn_ceilings(TunedDb& db) {
  auto& ceilings = options_.kernels.ceilings;
  ceilings = db.ceilings(info().fingerprint());
  const auto missing = missing_kinds(ceilings, info());
  if (!options_.ceilings || missing.empty()) return;
  try {
    for (std::size_t i = 0; i < missing.size(); ++i) {
      tell(fmt::format("{}: measuring peak {} of {}: {}", info().id(), i + 1, missing.size(),
                       missing[i]));
      const auto measured = checker_->measure_ceilings({missing[i]});
      db.set_ceilings(info(), measured);
      update(ceilings, measured);
    }
  } catch (const Error& error) {
    if (error.status() == Status::interrupted) throw;
    ceilings.clear();
    notes_.push_back(
        fmt::format("{}: no peaks, so no share of the roofline: {}", info().id(), error.what()));
  }
}

// Returns nothing if the default is used.
const Answer* DeviceBench::look_up(const Problem& problem) {
  if (!options_.winners) return nullptr;
  const Answer& answer = lookup_->find(problem);
  ++origins_[answer.origin];
  if (answer.origin != LookupOrigin::exact &&
      db_.find_winner(info().fingerprint(), problem.key(), options_.kernels.cold)) {
    notes_.push_back(
        fmt::format("{}: its winner is not valid on {} any more", problem.key(), info().id()));
  }
  return answer.origin == LookupOrigin::fallback ? nullptr : &answer;
}

Benchmark DeviceBench::kernel(const Problem& problem, const Config& config, ResultOrigin origin) {
  Benchmark benchmark = kernels_->make(problem, config, origin);
  const bool apart =
      options_.processes == Processes::all ||
      (options_.processes == Processes::automatic && depends_on_process(benchmark, info()));
  return apart ? processes_of(benchmark).apart(std::move(benchmark)) : benchmark;
}

/// Returns the configurations that the preset names, and the best known ones of its variants.
std::vector<Config> DeviceBench::ways_of(const Operation& operation, const PresetProblem& listed) {
  const Problem& problem = listed.problem;
  std::vector<Config> configs;
  const auto add = [&](const Config& config) {
    if (std::find(configs.begin(), configs.end(), config) == configs.end())
      configs.push_back(config);
  };
  const Space space = operation.space(problem, info());
  for (const std::string& text : listed.configs) {
    const auto config = space.parse(text);
    if (config) {
      add(*config);
    } else {
      notes_.push_back(fmt::format("{}: skipped on {}: {}", problem.key(), info().id(),
                                   config.failure().message));
    }
  }
  for (const std::string& variant : listed.variants) {
    if (const auto best = lookup_->best_of(problem, variant)) add(best->config);
  }
  return configs;
}

/// Adds the configurations that are measured of a problem.
void DeviceBench::add_answer(const Operation& operation, const PresetProblem& listed,
                             std::vector<Benchmark>& list) {
  const Problem& problem = listed.problem;
  const auto origin_of = [](const Answer& answer) {
    if (answer.origin == LookupOrigin::exact) return ResultOrigin::winner;
    if (answer.origin == LookupOrigin::predicted) return ResultOrigin::predicted;
    return answer.origin == LookupOrigin::nearest_shape ? ResultOrigin::nearest_shape
                                                        : ResultOrigin::same_architecture;
  };
  if (!listed.configs.empty() || !listed.variants.empty()) {
    for (const Config& config : ways_of(operation, listed))
      list.push_back(kernel(problem, config, ResultOrigin::chosen));
    return;
  }
  const Answer* known = look_up(problem);
  list.push_back(known != nullptr ? kernel(problem, known->config, origin_of(*known))
                                  : kernel(problem, operation.default_config(problem, info()),
                                           ResultOrigin::untuned));
}

/// Adds the operations that compute the same as a fused one, as a runtime would run them, unless
/// they are benchmarks already.
void DeviceBench::add_parts(const Operation& operation, const PresetProblem& listed,
                            std::vector<Benchmark>& list) {
  const auto parts = distinct_parts(operation, listed.problem);
  if (parts.empty()) {
    notes_.push_back(fmt::format("{}: no operations compute its parts", listed.problem.key()));
  }
  for (const auto& [part, count] : parts) {
    const auto same = [&, &problem = part](const Benchmark& one) {
      return one.subject.problem == problem && one.subject.origin != ResultOrigin::chosen;
    };
    if (std::any_of(list.begin(), list.end(), same)) continue;
    PresetProblem one;
    one.problem = part;
    add_answer(checker().catalog().at(part.op), one, list);
  }
}

/// Adds what the gates of a problem compare with, unless it is among its benchmarks, which begin
/// at `first`.
void DeviceBench::add_references(const Operation& operation, GatedProblem& gated,
                                 std::vector<Benchmark>& list, std::size_t first) {
  const Problem& problem = gated.listed->problem;
  const auto name_of = [&](const Config& config, ResultOrigin origin) {
    for (std::size_t i = first; i < list.size(); ++i) {
      const Subject& subject = list[i].subject;
      if (subject.origin == origin && subject.config == config) return list[i].name();
    }
    list.push_back(kernel(problem, config, origin));
    return list.back().name();
  };
  for (const Gate& gate : gated.listed->expect) {
    if (!gate.concerns(info())) continue;
    if (gate.reference == Gate::Reference::fallback) {
      gated.fallback = name_of(operation.default_config(problem, info()), ResultOrigin::untuned);
    } else if (gate.reference == Gate::Reference::variant) {
      if (const auto best = lookup_->best_of(problem, gate.variant))
        gated.variants[gate.variant] = name_of(best->config, ResultOrigin::chosen);
    }
  }
}

void DeviceBench::add_problem(const PresetProblem& listed, std::vector<Benchmark>& list) {
  const Problem& problem = listed.problem;
  const std::size_t first = list.size();
  GatedProblem gated{.listed = &listed};
  const auto skip = [&](const std::exception& error) {
    gated.skipped = error.what();
    notes_.push_back(
        fmt::format("{}: skipped on {}: {}", problem.key(), info().id(), gated.skipped));
  };
  try {
    const Operation& operation = checker().catalog().at(problem.op);
    value_of(check_fits(operation, problem, info()));
    add_answer(operation, listed, list);
    for (std::size_t i = first; i < list.size(); ++i) gated.subjects.push_back(list[i].name());
    // The default follows the answer, with which it is compared.
    const bool has_default =
        list.size() > first && list.back().subject.origin == ResultOrigin::untuned;
    if (options_.defaults && !has_default) {
      list.push_back(
          kernel(problem, operation.default_config(problem, info()), ResultOrigin::untuned));
    }
    add_references(operation, gated, list, first);
    if (listed.parts) add_parts(operation, listed, list);
    if (gated.subjects.empty()) gated.skipped = "no configuration of it runs on " + info().id();
  } catch (const CommandError& error) {  // too large
    skip(error);
  } catch (const Error& error) {
    skip(error);
  }
  const bool judged = std::any_of(listed.expect.begin(), listed.expect.end(),
                                  [&](const Gate& gate) { return gate.concerns(info()); });
  if (judged) gated_.push_back(std::move(gated));
}

void DeviceBench::tell_origins(std::size_t problems) {
  if (!options_.winners) return;
  for (const auto& line : lookup_->unreadable()) notes_.push_back(line);
  std::string runs;
  // A problem's parts and kernels of one's own are looked up as well.
  std::size_t untuned = 0, asked = 0;
  for (const auto& [origin, count] : origins_) asked += count;
  for (const auto& [origin, what] :
       {std::pair{LookupOrigin::nearest_shape, "the winner of the nearest shape"},
        {LookupOrigin::same_architecture, "the winner of another device of this architecture"},
        {LookupOrigin::predicted, "predictions"},
        {LookupOrigin::fallback, "defaults"}}) {
    const std::size_t count = origins_[origin];
    untuned += count;
    if (count > 0) runs += fmt::format("{}{} for {}", runs.empty() ? "" : ", ", what, count);
  }
  if (untuned == 0) return;
  notes_.push_back(fmt::format("{} of {} not tuned on {}: {}", untuned,
                               format_count(std::max(asked, problems), "problem"), info().id(),
                               runs));
}

BlockProcesses& DeviceBench::processes_of(const Benchmark& benchmark) {
  return benchmark.calls || !kernels_apart_ ? *calls_ : *kernels_apart_;
}

void DeviceBench::expect(const std::vector<const Benchmark*>& benchmarks) {
  std::map<BlockProcesses*, std::vector<std::string>> names{{&*calls_, {}}};
  if (kernels_apart_) names[&*kernels_apart_];
  for (const Benchmark* benchmark : benchmarks) {
    if (benchmark->apart) names[&processes_of(*benchmark)].push_back(benchmark->name());
  }
  for (const auto& [processes, expected] : names) processes->expect(expected);
}

std::vector<Benchmark> DeviceBench::benchmarks(const Preset& preset) {
  auto list = platform_benchmarks(*device_, preset.platform);
  if (std::any_of(preset.platform.begin(), preset.platform.end(), is_of_peers)) {
    const std::string why = why_no_peers(*device_);
    if (!why.empty()) notes_.push_back(fmt::format("peer: skipped on {}: {}", info().id(), why));
  }
  for (auto& benchmark : runtime_benchmarks(*device_, preset.runtime)) {
    list.push_back(std::move(benchmark));
  }
  if (options_.processes != Processes::none) {
    for (auto& benchmark : list) {
      if (benchmark.calls) benchmark = processes_of(benchmark).apart(std::move(benchmark));
    }
  }
  for (const auto& listed : preset.problems) add_problem(listed, list);
  tell_origins(preset.problems.size());
  return list;
}

bool names_vendor(const Preset& preset) {
  return std::any_of(preset.problems.begin(), preset.problems.end(),
                     [](const PresetProblem& listed) { return listed.names(vendor_variant); });
}

}  // namespace greta::tuner::cli
