#include "tuner/evaluate/local_evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>
#include <tuple>

#include "runtime/device/system/stall_watch.hpp"
#include "tuner/evaluate/local_open.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/energy_meter.hpp"
#include "tuner/measure/sampler.hpp"

namespace greta::tuner {
namespace {

constexpr int maximum_lookahead = 16;

// Returns the status of a failed launch if the candidate can be its cause. Any other failure is an
// error of the device or the host.
Status trial_status(Status status) {
  switch (status) {
    case Status::constraints:
    case Status::compile:
    case Status::correctness:
    case Status::timeout:
    case Status::crash:
    case Status::out_of_memory:
      return status;
    default:
      return Status::launch;
  }
}

OpenOptions compiles_as(const EvaluatorOptions& options) {
  OpenOptions open;
  open.cache_directory = options.cache_directory;
  return open;
}

}  // namespace

LocalEvaluator::LocalEvaluator(const EvaluatorOptions& options)
    : options_(options),
      slots_(options.compile_slots, options.compile_slot_count),
      keeper_(options.keep_failed, compiles_as(options)) {
  open();
}
LocalEvaluator::~LocalEvaluator() = default;

void LocalEvaluator::open() {
  open_.reset();
  auto opened = std::make_unique<Open>(info_);
  OpenOptions device_options;
  device_options.cache_directory = options_.cache_directory;
  device_options.sanitize = options_.sanitize;
  device_options.vendor = options_.vendor;
  device_options.emulated_matrices = options_.emulated_matrices;
  device_options.counters = options_.counters;
  opened->device = open_device(options_.device, device_options).value();
  info_ = without(opened->device->info(), options_.avoid);
  options_.device = info_.address();  // the card must be the same when it is reopened
  if (options_.flush_bytes == 0) options_.flush_bytes = default_flush_bytes(info_);
  opened->compiler = std::make_unique<CompileAhead>(*opened->device, slots_);
  opened->cold_timer = LaunchTimer::create(*opened->device, options_.flush_bytes).value();
  opened->warm_timer =
      LaunchTimer::create(*opened->device, 0, opened->cold_timer->reference_kernel()).value();
  open_ = std::move(opened);
}

void LocalEvaluator::ensure_open() {
  if (!open_) open();
}

void LocalEvaluator::recover() {
  if (options_.reopen) {
    open();
  } else {
    lost_ = true;
  }
}

void LocalEvaluator::recover_from(const Trial& ended) {
  try {
    recover();
  } catch (const Error&) {
    undone_.push_back(ended);
    throw;
  }
}

int LocalEvaluator::lookahead() const {
  if (options_.compile_threads > 0) return options_.compile_threads;
  if (info_.is_cpu()) return 1;  // compiling would take cores from the measurements
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) - 1, 1,
                    maximum_lookahead);
}

void LocalEvaluator::prepare(const Problem& problem, const std::vector<Config>& upcoming) {
  if (lookahead() == 1 || !open_) return;
  for (const auto& config : upcoming) {
    auto plan = plan_of(problem, config);
    if (!plan) continue;  // evaluate() will report the reason
    std::vector<std::string> kernels;
    for (const auto& source : plan->sources) kernels.push_back(open_->compiler->start(source));
    small_checks(problem, config, *plan).prepare(config, *plan);
    open_->announced.insert_or_assign(
        config, Open::Announced{problem, *std::move(plan), std::move(kernels)});
  }
}

std::size_t LocalEvaluator::first_ready(const Problem& /*problem*/,
                                        const std::vector<Config>& announced) {
  if (!open_) return 0;
  std::vector<std::vector<std::string>> kernels;
  for (const Config& config : announced) {
    const auto found = open_->announced.find(config);
    kernels.push_back(found == open_->announced.end() ? std::vector<std::string>()
                                                      : found->second.kernels);
  }
  return open_->compiler->first_compiled(kernels);
}

SmallChecks& LocalEvaluator::small_checks(const Problem& problem, const Config& config,
                                          const LaunchPlan& plan) {
  auto& small = open_->small;
  if (!small || small->problem() != problem)
    small.emplace(catalog().at(problem.op), problem, info_, options_.seed, config, plan);
  return *small;
}

// One workload is kept, because a session works on one problem at a time.
Result<LaunchPlan> LocalEvaluator::plan_of(const Problem& problem, const Config& config) const {
  return catalog().at(problem.op).plan(problem, info_, config);
}

Result<Workload*> LocalEvaluator::workload(const Problem& problem, const InputSeed& seed,
                                           InputStyle style) {
  auto& current = open_->workload;
  if (!current || current->problem() != problem) {
    open_->rounds.clear();
    // The operands of the small checks would stay allocated beside the new problem's.
    if (open_->small && open_->small->problem() != problem) open_->small.reset();
    current.reset();
    open_->device->trim();
    auto created = Workload::create(*open_->device, catalog().at(problem.op), problem);
    if (!created) return created.failure();
    current = *std::move(created);
  }
  if (!current->has_inputs(seed, style)) {
    if (auto set = current->set_inputs(*open_->device, seed, style); !set) {
      current.reset();
      return set.failure();
    }
  }
  return &*current;
}

Result<void> check_spills(const std::vector<KernelFigures>& kernels) {
  for (const auto& [name, statistics] : kernels) {
    if (!statistics.spills()) continue;
    std::string registers;
    if (statistics.spilled_registers > 0) {
      registers = fmt::format("{} registers, ", statistics.spilled_registers);
    }
    return Failure{Status::constraints,
                   fmt::format("{} spills {}{} B of scratch memory per thread", name, registers,
                               statistics.scratch_bytes),
                   {}};
  }
  return {};
}

Result<LocalEvaluator::Candidate> LocalEvaluator::make_candidate(const Problem& problem,
                                                                 const Config& config,
                                                                 Trial& trial) {
  const Lap lap(trial.compile_s);
  const auto announced = open_->announced.extract(config);
  const bool known = announced && announced.mapped().problem == problem;
  auto plan = known ? std::move(announced.mapped().plan) : plan_of(problem, config);
  if (!plan) return plan.failure();
  std::string algorithm;  // of a vendor's library
  auto candidate = PreparedPlan::create(*open_->device, *plan, open_->workload->operands(),
                                        [&](const KernelSource& source) {
                                          auto kernel = open_->compiler->take(source);
                                          if (source.call && kernel) {
                                            if (auto text = (*kernel)->listing())
                                              algorithm = *std::move(text);
                                          }
                                          return kernel;
                                        });
  if (!candidate) return candidate.failure();
  trial.content_keys = candidate->content_keys();
  trial.kernels.clear();
  const auto statistics = candidate->statistics();
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    const auto& [name, call] = std::tie(plan->sources[i].name, plan->sources[i].call);
    trial.kernels.push_back(
        {call && !algorithm.empty() ? fmt::format("{} ({})", name, algorithm) : name,
         statistics[i]});
  }
  return Candidate{*std::move(plan), *std::move(candidate)};
}

// Returns the timer for launches on the workload's operands.
LaunchTimer& LocalEvaluator::timer(const TrialLimits& limits) {
  LaunchTimer& timer = limits.cold ? *open_->cold_timer : *open_->warm_timer;
  timer.set_written_bytes(open_->workload->operands().written_bytes());
  return timer;
}

Result<Measurement> LocalEvaluator::measure(const PreparedPlan& candidate,
                                            const TrialLimits& limits) {
  LaunchTimer& timer = this->timer(limits);
  const auto record = [&](Stream& stream) { return candidate.record(stream); };
  int batch = 1;
  const auto take = [&](int count) {
    return timer.take(record, count, batch, deadline_of(limits.run_s * count * batch + 10));
  };
  const auto timed = timer.reach_pace_with(record, deadline_of(limits.run_s + 10));
  if (!timed) return timed.failure();
  auto first = *timed ? Result(std::vector{**timed}) : take(1);
  if (!first) return first.failure();
  batch = batch_for(first->front(), info_.timestamp_period_ns);

  SamplingLimits sampling;
  sampling.seconds = limits.measure_s;
  sampling.best_us = limits.best_us;
  const double copy_us = static_cast<double>(timer.flush_bytes()) / (info_.is_cpu() ? 5e3 : 1e6);
  sampling.overhead_us = copy_us * batch + first->front() * (batch - 1);
  sampling.submission_us = timer.submission_us();
  sampling.warm_up_us = first->front();
  Result<Measurement> measurement = Measurement{};
  // The check was the warm-up.
  measurement->raced = clearly_slower(*first, limits.best_us);
  if (measurement->raced || first->front() * 1e-6 >= limits.measure_s) {
    measurement->samples_us = *std::move(first);
    summarise(*measurement);
  } else {
    measurement = sample_until_sure(take, sampling);
  }
  if (measurement) {
    measurement->cold = limits.cold;
    measurement->batch = batch;
    measurement->flush_bytes = timer.flush_bytes();
    const CardConditions& conditions = conditions_.latest(info_.card.pci_address);
    measurement->clocks = conditions.clocks;
    measurement->card_state = conditions.state;
  }
  return measurement;
}

Trial LocalEvaluator::run_trial(const Problem& problem, const Config& config,
                                const std::function<Result<void>(Trial&)>& steps) {
  Trial trial;
  trial.config = config;
  trial.problem_key = problem.key();
  trial.card = info_.card.uuid;
  ensure_open();
  const auto outcome = steps(trial);
  if (outcome) return trial;
  const Failure& failure = outcome.failure();
  trial.failure = trial_status(failure.status);
  trial.message = failure.message;
  trial.log = failure.log;
  if (failure.status == Status::timeout || failure.status == Status::device_lost)
    recover_from(trial);
  return trial;
}

Trial LocalEvaluator::evaluate(const Problem& problem, const Config& config,
                               const TrialLimits& limits) {
  return run_trial(problem, config, [&](Trial& trial) -> Result<void> {
    const auto candidate =
        checked(problem, config, options_.seed, InputStyle::plain, limits, trial);
    if (!candidate) return candidate.failure();
    if (auto right = check_small(problem, config, *candidate, limits, trial); !right) return right;
    const Lap lap(trial.measure_s);
    auto measurement = measure(candidate->prepared, limits);
    if (!measurement) return measurement.failure();
    trial.measurement = *std::move(measurement);
    return {};
  });
}

Result<void> LocalEvaluator::prepare_rounds(const Problem& problem,
                                            const std::vector<Config>& configs) {
  if (auto load = workload(problem, options_.seed, InputStyle::plain); !load) return load.failure();
  if (open_->rounds.holds(configs)) return {};
  open_->rounds.clear();  // frees memory for other work
  std::vector<PreparedPlan> candidates;
  for (const auto& config : configs) {
    Trial ignored;
    auto candidate = make_candidate(problem, config, ignored);
    if (!candidate) return candidate.failure();
    candidates.push_back(std::move(candidate->prepared));
  }
  open_->rounds.set(configs, std::move(candidates));
  return {};
}

Rounds LocalEvaluator::time_rounds(const Problem& problem, const std::vector<Config>& configs,
                                   int rounds, double seconds, std::uint64_t seed,
                                   const TrialLimits& limits) {
  ensure_open();
  if (auto ready = prepare_rounds(problem, configs); !ready) {
    Rounds none;
    none.us.resize(configs.size());
    none.batch.assign(configs.size(), 1);
    none.failure = ready.failure();
    return none;
  }
  Rounds result = open_->rounds.run(timer(limits), rounds, seconds, seed, limits);
  if (result.failure) {
    Trial ended;
    ended.config = configs.front();
    ended.problem_key = problem.key();
    ended.failure = trial_status(result.failure->status);
    ended.message = "timing in rounds: " + result.failure->message;
    recover_from(ended);
  }
  return result;
}

Result<std::vector<Energy>> LocalEvaluator::measure_energy(const Problem& problem,
                                                           const std::vector<Config>& configs,
                                                           int blocks, double seconds,
                                                           const TrialLimits& limits) {
  CardSensor* const sensor = card_sensor(info_.card.pci_address);
  if (sensor == nullptr || !sensor->joules())
    return Failure{Status::unavailable, "the driver reports no energy", {}};
  ensure_open();
  if (auto ready = prepare_rounds(problem, configs); !ready) return ready.failure();
  Stream& stream = open_->warm_timer->stream();
  std::vector<std::vector<EnergyBlock>> measured(configs.size());
  for (int block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const auto launch = [&](int count) -> Result<void> {
        const StallWatch watch(limits.run_s * count + 10);
        for (int launched = 0; launched < count; ++launched) {
          if (auto done = open_->rounds.candidate(i).record(stream); !done) {
            stream.discard();
            return done;
          }
        }
        return stream.synchronize(deadline_of(limits.run_s * count + 10));
      };
      auto one = measure_block(*sensor, launch, seconds);
      if (!one) {
        const Status status = one.failure().status;
        if (status == Status::timeout || status == Status::device_lost) recover();
        return one.failure();
      }
      measured[i].push_back(*one);
    }
  }
  std::vector<Energy> energies;
  for (const auto& of_one : measured) energies.push_back(summarise(of_one, sensor->name()));
  return energies;
}

Result<CounterReading> LocalEvaluator::count(const Problem& problem, const Config& config,
                                             const std::vector<std::string>& counters,
                                             const TrialLimits& limits) {
  ensure_open();
  if (!open_->counters) {
    auto opened = open_counters(*open_->device);
    if (!opened) return opened.failure();
    open_->counters = *std::move(opened);
  }
  if (auto ready = prepare_rounds(problem, {config}); !ready) return ready.failure();
  if (limits.cold && !open_->counters_flush) {
    auto flush = CacheFlush::create(*open_->device, options_.flush_bytes);
    if (!flush) return flush.failure();
    open_->counters_flush = *std::move(flush);
  }
  CountedWork work;
  work.stream = &open_->warm_timer->stream();
  work.deadline = deadline_of(limits.run_s + 10);
  // A warm pass follows an uncounted run.
  work.prepare = [&](Stream& stream) {
    return limits.cold ? open_->counters_flush->record(stream, 0)
                       : open_->rounds.candidate(0).record(stream);
  };
  work.record = [&](Stream& stream) { return open_->rounds.candidate(0).record(stream); };
  auto reading = open_->counters->read(counters, work);
  if (!reading) {
    const Status status = reading.failure().status;
    if (status == Status::timeout || status == Status::device_lost) recover();
  }
  return reading;
}

std::vector<Ceiling> LocalEvaluator::measure_ceilings(const std::vector<std::string>& kinds) {
  ensure_open();
  auto measured = tuner::measure_ceilings(*open_->device, kinds);
  if (measured) return *std::move(measured);
  const Failure& failure = measured.failure();
  if (failure.status == Status::timeout || failure.status == Status::device_lost) recover();
  throw Error(failure);
}

}  // namespace greta::tuner
