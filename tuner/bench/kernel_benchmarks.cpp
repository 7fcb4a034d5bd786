#include "tuner/bench/kernel_benchmarks.hpp"

#include <algorithm>
#include <map>

#include "kernels/catalog.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta {

struct KernelBenchmarks::Plan {
  PreparedPlan plan;
  int batch = 0;  // launches averaged in a sample; 0: not known yet
};

struct KernelBenchmarks::Loaded {
  Problem problem;
  std::uint64_t bytes = 0;
  Operands operands;
  std::map<std::string, Plan> plans;  // by configuration
};

std::uint64_t operand_bytes(const Problem& problem) {
  std::uint64_t bytes = 0;
  for (const auto& spec : find_template(problem.op)->tensors(problem)) bytes += spec.bytes();
  return bytes;
}

KernelBenchmarks::KernelBenchmarks(Device& device, Evaluator& checker, const Options& options)
    : device_(device), checker_(checker), options_(options) {
  const std::uint64_t flush =
      options.flush_bytes > 0 ? options.flush_bytes : default_flush_bytes(device.info());
  timer_.emplace(std::move(LaunchTimer::create(device, options.cold ? flush : 0).value()));
}

KernelBenchmarks::~KernelBenchmarks() = default;

Benchmark KernelBenchmarks::make(const Problem& problem, const Config& config,
                                 const std::string& origin) {
  Benchmark benchmark;
  benchmark.kind = "kernel";
  benchmark.row.set_problem(problem);
  benchmark.row.set_device(device_.info());
  benchmark.row.config = config.text();
  benchmark.row.origin = origin;
  benchmark.row.cache = options_.cold ? "cold" : "warm";
  benchmark.work = find_template(problem.op)->work(problem);
  benchmark.roofline_us = roofline_us(problem.dtype, benchmark.work, options_.ceilings);
  benchmark.device_bytes = operand_bytes(problem);
  benchmark.check = [this, problem, config](CsvRow& row, int run) {
    return check(problem, config, row, run);
  };
  benchmark.take = [this, problem, config](int count) { return take(problem, config, count); };
  return benchmark;
}

// Of several runs the row keeps the result that came closest to its bound.
Result<void> KernelBenchmarks::check(const Problem& problem, const Config& config, CsvRow& row,
                                     int run) {
  TrialLimits limits;
  limits.run_s = options_.timeout_s;
  const auto seed = options_.seed + static_cast<std::uint64_t>(run);
  const Trial trial = checker_.verify(problem, config, seed, limits);
  const double known = row.bound > 0 ? row.error / row.bound : -1;
  if (trial.verdict.bound > 0 && trial.verdict.ratio() > known) row.set_verdict(trial.verdict);
  if (!trial.ok()) return Failure{*trial.failure, trial.message, trial.log};
  return {};
}

Result<KernelBenchmarks::Loaded*> KernelBenchmarks::load(const Problem& problem) {
  const auto found = std::find_if(loaded_.begin(), loaded_.end(),
                                  [&](const auto& entry) { return entry->problem == problem; });
  if (found != loaded_.end()) {
    loaded_.splice(loaded_.begin(), loaded_, found);
    return loaded_.front().get();
  }
  const std::uint64_t wanted = operand_bytes(problem);
  std::uint64_t held = wanted;
  for (const auto& entry : loaded_) held += entry->bytes;
  while (!loaded_.empty() && held > device_.info().memory_bytes / 2) {
    held -= loaded_.back()->bytes;
    loaded_.pop_back();
    device_.trim();
  }
  const KernelTemplate& kernel_template = *find_template(problem.op);
  auto operands = Operands::create(device_, kernel_template.tensors(problem));
  if (!operands) return operands.failure();
  auto fresh = std::make_unique<Loaded>(Loaded{problem, wanted, *std::move(operands), {}});
  const auto inputs = kernel_template.inputs(problem, options_.seed);
  auto input = inputs.begin();
  for (std::size_t i = 0; i < fresh->operands.specs().size(); ++i) {
    if (fresh->operands.specs()[i].role == Role::output) continue;
    if (auto up = fresh->operands.upload(device_, i, *input); !up) return up.failure();
    ++input;
  }
  loaded_.push_front(std::move(fresh));
  return loaded_.front().get();
}

Result<KernelBenchmarks::Plan*> KernelBenchmarks::prepare(Loaded& loaded, const Config& config) {
  const std::string key = config.text();
  if (const auto found = loaded.plans.find(key); found != loaded.plans.end()) return &found->second;
  const auto plan = find_template(loaded.problem.op)->plan(loaded.problem, device_.info(), config);
  if (!plan) return plan.failure();
  auto prepared =
      PreparedPlan::create(device_, *plan, loaded.operands,
                           [&](const KernelSource& source) { return device_.compile(source); });
  if (!prepared) return prepared.failure();
  return &loaded.plans.emplace(key, Plan{*std::move(prepared), 0}).first->second;
}

Result<std::vector<double>> KernelBenchmarks::take(const Problem& problem, const Config& config,
                                                   int count) {
  const auto loaded = load(problem);
  if (!loaded) return loaded.failure();
  const auto plan = prepare(**loaded, config);
  if (!plan) return plan.failure();
  timer_->set_written_bytes((*loaded)->operands.written_bytes());
  const LaunchTimer::Record record = [&](Stream& stream) { return (*plan)->plan.record(stream); };
  const auto samples = [&](int wanted, int batch) {
    return timer_->take(record, wanted, batch,
                        deadline_of(options_.timeout_s * wanted * batch + 10));
  };
  if (auto awake = timer_->reach_pace(); !awake) return awake.failure();
  int& batch = (*plan)->batch;
  if (batch == 0) {
    const auto first = samples(2, 1);
    if (!first) return first.failure();
    batch = batch_for(first->back(), device_.info().timestamp_period_ns);
  }
  auto taken = samples(count + 1, batch);
  if (taken) taken->erase(taken->begin());  // warms up what the flush leaves alone
  return taken;
}

}  // namespace greta
