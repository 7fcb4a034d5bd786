#include "tuner/bench/kernel_benchmarks.hpp"

#include <algorithm>
#include <map>

#include "kernels/catalog.hpp"
#include "tuner/bench/undisturbed.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr double block_us = 3e6;       // approximate maximum device time of a block
constexpr double block_wall_us = 1e6;  // the same of all that a block on a CPU takes

}  // namespace

struct KernelBenchmarks::Plan {
  PreparedPlan plan;
  int batch = 0;  // launches averaged in a sample; 0: not known yet
};

struct KernelBenchmarks::Loaded {
  Problem problem;
  std::uint64_t bytes = 0;
  Operands operands;
  std::map<std::string, Plan> plans;  // key: configuration
};

std::uint64_t operand_bytes(const Operation& operation, const Problem& problem) {
  std::uint64_t bytes = 0;
  for (const auto& spec : operation.tensors(problem)) bytes += spec.bytes();
  return bytes;
}

KernelBenchmarks::KernelBenchmarks(Device& device, const Catalog& catalog, const DeviceInfo& info,
                                   const Options& options)
    : device_(device), catalog_(catalog), info_(info), options_(options) {
  const std::uint64_t flush =
      options.flush_bytes > 0 ? options.flush_bytes : default_flush_bytes(device.info());
  const bool one_by_one = device.info().is_cpu();
  timer_.emplace(
      std::move(LaunchTimer::create(device, options.cold && !one_by_one ? flush : 0).value()));
  if (options.cold && one_by_one)
    flush_.emplace(std::move(CacheFlush::create(device, flush).value()));
  if (one_by_one) {
    steady_.emplace(std::move(SteadyWork::create(device, timer_->reference_kernel()).value()));
  }
  if (options.trace != nullptr) trace_.emplace(device, *options.trace);
}

KernelBenchmarks::~KernelBenchmarks() = default;

Benchmark KernelBenchmarks::make(const Problem& problem, const Config& config,
                                 ResultOrigin origin) {
  Benchmark benchmark;
  benchmark.subject = {.problem = problem,
                       .config = config,
                       .origin = origin,
                       .cache = options_.cold ? CacheState::cold : CacheState::warm};
  benchmark.subject.set_device(info_);
  benchmark.work = catalog_.at(problem.op).work(problem);
  benchmark.roofline_us = roofline_us(problem.dtype, benchmark.work, options_.ceilings);
  benchmark.device_bytes = operand_bytes(catalog_.at(problem.op), problem);
  if (options_.checker != nullptr) {
    benchmark.check = [this, problem, config](int run) {
      TrialLimits limits;
      limits.run_s = options_.timeout_s;
      return options_.checker->verify(problem, config,
                                      options_.seed + static_cast<std::uint64_t>(run), limits);
    };
  }
  benchmark.take = [this, problem, config](int count) { return take(problem, config, count); };
  benchmark.control = [this] { return control(); };
  if (steady_) benchmark.processor = [this] { return processor_; };
  return benchmark;
}

Result<KernelBenchmarks::Loaded*> KernelBenchmarks::load(const Problem& problem) {
  const auto found = std::find_if(loaded_.begin(), loaded_.end(),
                                  [&](const auto& entry) { return entry->problem == problem; });
  if (found != loaded_.end()) {
    loaded_.splice(loaded_.begin(), loaded_, found);
    return loaded_.front().get();
  }
  const std::uint64_t wanted = operand_bytes(catalog_.at(problem.op), problem);
  std::uint64_t held = wanted;
  for (const auto& entry : loaded_) held += entry->bytes;
  const double most = options_.held_share * static_cast<double>(device_.info().memory_bytes);
  while (!loaded_.empty() && static_cast<double>(held) > most) {
    held -= loaded_.back()->bytes;
    loaded_.pop_back();
    device_.trim();
  }
  const Operation& operation = catalog_.at(problem.op);
  auto operands = Operands::create(device_, operation.tensors(problem));
  if (!operands) return operands.failure();
  auto fresh = std::make_unique<Loaded>(Loaded{problem, wanted, *std::move(operands), {}});
  const auto inputs = operation.inputs(problem, options_.seed);
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
  const auto plan = catalog_.at(loaded.problem.op).plan(loaded.problem, info_, config);
  if (!plan) return plan.failure();
  auto prepared =
      PreparedPlan::create(device_, *plan, loaded.operands,
                           [&](const KernelSource& source) { return device_.compile(source); });
  if (!prepared) return prepared.failure();
  return &loaded.plans.emplace(key, Plan{*std::move(prepared), 0}).first->second;
}

// A CPU device shares the cores with other programs. Each of its samples is therefore a separate
// submission after the one that flushes the caches, so that a disturbed sample can be repeated.
Result<std::vector<double>> KernelBenchmarks::take_samples(const LaunchTimer::Record& record,
                                                           int count, int batch,
                                                           std::uint64_t written) {
  const auto deadline = deadline_of(options_.timeout_s * count * batch + 10);
  timer_->set_written_bytes(written);
  if (!device_.info().is_cpu()) return timer_->take(record, count, batch, deadline);
  const auto flush = [&]() -> Result<void> {
    if (!flush_) return {};
    if (auto r = flush_->record(timer_->stream(), written); !r) return r;
    return timer_->stream().synchronize(deadline);
  };
  const auto one = [&]() -> Result<double> {
    const double before = thread_times(Waiting::other_threads).ran_us;
    const auto taken = timer_->take(record, 1, 1, deadline);
    if (!taken) return taken.failure();
    const double ran = thread_times(Waiting::other_threads).ran_us - before;
    if (ran > 0) processor_.samples_us.push_back(ran);
    return taken->front();
  };
  processor_.samples_us.clear();
  std::vector<double> samples;
  for (int i = 0; i < count * batch; ++i) {
    const auto us = undisturbed(flush, one, Waiting::other_threads);
    if (!us) return us.failure();
    if (i % batch == 0) samples.push_back(0);
    samples.back() += *us / batch;
  }
  return samples;
}

int samples_of_block(int count, double device_us, double wall_us) {
  double possible = std::min<double>(count, block_us / device_us);
  if (wall_us > 0) possible = std::min(possible, block_wall_us / wall_us);
  return static_cast<int>(std::max(possible, 1.0));
}

Result<double> KernelBenchmarks::control() {
  if (!steady_) return steady_us(*timer_);
  constexpr int count = 5;
  const auto taken = take_samples([&](Stream& stream) { return steady_->record(stream); }, count, 1,
                                  SteadyWork::written_bytes);
  if (!taken) return taken.failure();
  processor_.control_us = median(processor_.samples_us);
  return *std::min_element(taken->begin(), taken->end());
}

Result<std::vector<double>> KernelBenchmarks::take(const Problem& problem, const Config& config,
                                                   int count) {
  const auto loaded = load(problem);
  if (!loaded) return loaded.failure();
  const auto plan = prepare(**loaded, config);
  if (!plan) return plan.failure();
  const std::uint64_t written = (*loaded)->operands.written_bytes();
  const LaunchTimer::Record record = [&](Stream& stream) { return (*plan)->plan.record(stream); };
  if (auto awake = timer_->reach_pace(); !awake) return awake.failure();
  if (trace_) {
    if (auto aligned = trace_->align(); !aligned) return aligned.failure();
    timer_->set_observer([&](const Event& start, const Event& stop) {
      return trace_->add(problem.key(), start, stop);
    });
  }
  auto taken = take_block(record, (*plan)->batch, count, written);
  timer_->set_observer(nullptr);
  return taken;
}

// The first sample is a warm-up for everything but the flushed caches, and determines how many more
// there is time for. If one launch takes the time of a block (twice that for the first launch), it
// is the whole block.
Result<std::vector<double>> KernelBenchmarks::take_block(const LaunchTimer::Record& record,
                                                         int& batch, int count,
                                                         std::uint64_t written) {
  const bool never_ran = batch == 0;
  if (never_ran) batch = 1;
  Stopwatch watch;
  auto first = take_samples(record, 1, batch, written);
  if (!first || first->front() * batch >= (never_ran ? 2 : 1) * block_us) return first;
  if (never_ran) {
    watch = Stopwatch();
    first = take_samples(record, 1, 1, written);
    if (!first) return first;
    batch = batch_for(first->front(), device_.info().timestamp_period_ns);
  }
  const double wall_us = device_.info().is_cpu() ? 1e6 * watch.seconds() : 0;
  const int affordable = samples_of_block(count, first->front() * batch, wall_us);
  return take_samples(record, affordable, batch, written);
}

}  // namespace greta::tuner
