#include "tuner/bench/soak_kernel.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "kernels/described/described_operation.hpp"
#include "runtime/device/system/input_file.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr std::uint32_t most_launches = 128;  // in a submission
constexpr double submission_s = 0.02;         // long enough that a GPU rarely waits for the host
constexpr std::size_t most_times = 4096;      // kept of a turn

}  // namespace

Result<std::unique_ptr<SoakKernel>> SoakKernel::create(Device& device, const DeviceInfo& info,
                                                       const Operation& operation,
                                                       const Problem& problem, const Config& config,
                                                       const Options& options) {
  auto load = Workload::create(device, operation, problem);
  if (!load) return load.failure();
  const auto plan = operation.plan(problem, info, config);
  if (!plan) return plan.failure();
  auto prepared =
      PreparedPlan::create(device, *plan, load->operands(),
                           [&](const KernelSource& source) { return device.compile(source); });
  if (!prepared) return prepared.failure();
  std::unique_ptr<SoakKernel> kernel(
      new SoakKernel(device, *std::move(load), *std::move(prepared), options));
  kernel->unordered_ = operation.variant(config.variant).unordered;
  if (auto ready = kernel->prepare(); !ready) return ready.failure();
  return kernel;
}

Result<void> SoakKernel::prepare() {
  auto stream = device_.create_stream();
  if (!stream) return stream.failure();
  stream_ = *std::move(stream);
  for (std::uint32_t i = 0; i < 2 * most_launches; ++i) {
    auto event = device_.create_event();
    if (!event) return event.failure();
    events_.push_back(*std::move(event));
  }
  if (auto set = load_.set_inputs(device_, options_.seed, InputStyle::plain); !set) return set;
  if (!unordered_) {
    auto same = SameBits::create(device_, *stream_, load_.operands(), most_launches);
    if (!same) return same.failure();
    same_.emplace(*std::move(same));
  }
  Verdict verdict;
  if (auto right = load_.check(device_, *stream_, plan_, options_.timeout_s, verdict); !right)
    return right;
  return same_ ? same_->keep(*stream_) : Result<void>();
}

Result<void> SoakKernel::record(std::uint32_t slot) {
  Stream& stream = *stream_;
  if (auto r = same_->record_restore(stream); !r) return r;
  const AroundLaunch around{events_[2 * slot].get(), events_[2 * slot + 1].get()};
  if (auto r = load_.record(stream, plan_, {}, around); !r) return r;
  return same_->record_compare(stream, slot);
}

Result<void> SoakKernel::read_times(std::uint32_t count, std::vector<double>& us) const {
  for (std::uint32_t i = 0; i < count && us.size() < most_times; ++i) {
    const auto elapsed = device_.elapsed_us(*events_[2 * i], *events_[2 * i + 1]);
    if (!elapsed) return elapsed.failure();
    us.push_back(*elapsed);
  }
  return {};
}

// Runs one submission of launches, all compared on the device.
Result<void> SoakKernel::run_compared(SoakTurn& turn, std::vector<double>& us) {
  const std::uint32_t count = launches_;
  const Stopwatch watch;
  const auto all = [&]() -> Result<void> {
    if (auto r = same_->record_clear(*stream_); !r) return r;
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      if (auto r = record(slot); !r) return r;
    }
    return {};
  };
  if (auto recorded = all(); !recorded) {
    stream_->discard();
    return recorded;
  }
  if (auto done = stream_->synchronize(deadline_of(options_.timeout_s * count)); !done) return done;
  const auto wrong = same_->wrong(device_, count);
  if (!wrong) return wrong.failure();
  turn.launches += count;
  turn.wrong += *wrong;
  const double each_s = std::max(watch.seconds() / count, 1e-9);
  launches_ = static_cast<std::uint32_t>(
      std::clamp(submission_s / each_s, 1.0, static_cast<double>(most_launches)));
  return read_times(count, us);
}

// Runs one launch and checks it against the reference.
Result<void> SoakKernel::run_checked(SoakTurn& turn, std::vector<double>& us) {
  Verdict verdict;
  const AroundLaunch around{events_[0].get(), events_[1].get()};
  const auto right = load_.check(device_, *stream_, plan_, options_.timeout_s, verdict, around);
  if (!right && right.failure().status != Status::correctness) return right;
  ++turn.launches;
  if (!right) ++turn.wrong;
  return read_times(1, us);
}

Result<void> SoakKernel::check_once(SoakTurn& turn) {
  std::vector<double> us;
  return run_checked(turn, us);
}

Result<void> SoakKernel::run(double seconds, const std::atomic<bool>& stop, SoakTurn& turn) {
  const Stopwatch watch;
  std::vector<double> us;
  Result<void> ran;
  do {
    ran = same_ ? run_compared(turn, us) : run_checked(turn, us);
  } while (ran && !stop && watch.seconds() < seconds);
  if (!us.empty()) {
    turn.median_us = median(us);
    turn.longest_us = *std::max_element(us.begin(), us.end());
  }
  return ran;
}

double resident_bytes() {
  std::istringstream in(read_system_file("/proc/self/statm"));
  double pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace greta::tuner
