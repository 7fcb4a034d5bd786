#include "runtime/device/hip/host/executor.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/device/hip/host/faults.hpp"
#include "runtime/device/hip/host/stack_limits.hpp"

namespace greta::device::hip::host {

namespace {

constexpr unsigned for_earlier_workers = 1;

}  // namespace

struct Executor::Run {
  Run(const Job& its_job, const std::function<void()>& its_earlier, unsigned most_workers)
      : job(its_job), earlier(its_earlier) {
    const greta_host::Index grid = job.launch.grid, of = job.library->entry().cluster;
    rows = {grid.x / of.x, grid.y / of.y, grid.z / of.z};
    clusters = std::uint64_t{rows.x} * rows.y * rows.z;
    const greta_host::Index block = job.launch.block;
    const std::uint64_t threads = std::uint64_t{of.x} * of.y * of.z * block.x * block.y * block.z;
    workers = workers_for(threads, most_workers);
  }

  const Job& job;
  const std::function<void()>& earlier;
  greta_host::Index rows{};  ///< clusters along each dimension of the grid
  std::uint64_t clusters = 0;
  unsigned workers = 1;  ///< the first ones may work on it
  std::atomic<std::uint64_t> next{0};
  unsigned working = 0;        ///< number of OS threads that work on it
  std::optional<Fault> fault;  ///< the first fault
};

namespace {

unsigned usable_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const int processors = known ? CPU_COUNT(&allowed) : 1;
  return static_cast<unsigned>(std::clamp(processors, 2, 64));
}

}  // namespace

Executor& Executor::instance() {
  static auto* const executor = new Executor(usable_processors(), 0);
  return *executor;
}

Executor& Executor::for_earlier() {
  static auto* const executor = new Executor(for_earlier_workers, instance().workers());
  return *executor;
}

Executor::Executor(unsigned workers, unsigned first) : first_(first) {
  workers_.resize(workers);
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; i < workers; ++i) {
    std::thread thread([this, i] { work(i); });
    workers_[i].thread = thread.native_handle();
    thread.detach();
  }
}

void Executor::work(unsigned number) {
  ClusterRunner runner;
  const FaultGuard guard(runner);
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = runs_.end();
    more_.wait(lock, [&] {
      next = std::find_if(runs_.begin(), runs_.end(),
                          [&](const Run* run) { return number < run->workers; });
      return next != runs_.end();
    });
    Run& run = **next;
    ++run.working;
    workers_[number].run = &run;
    lock.unlock();
    run_clusters(run, runner, number);
    runner.release_stacks(kept_stacks(instance().workers()));
    lock.lock();
    workers_[number].run = nullptr;
    if (const auto at = std::find(runs_.begin(), runs_.end(), &run); at != runs_.end()) {
      runs_.erase(at);
    }
    if (--run.working == 0) done_.notify_all();
  }
}

void Executor::run_clusters(Run& run, ClusterRunner& runner, unsigned number) {
  const auto fail = [&](Fault fault) {
    run.next = run.clusters;
    const std::lock_guard lock(mutex_);
    if (!run.fault) run.fault = std::move(fault);
  };
  const greta_host::Index of = run.job.library->entry().cluster;
  std::vector<const greta_host::Entry*> copies;
  for (unsigned rank = 0; rank < of.x * of.y * of.z; ++rank) {
    const unsigned threads = instance().workers() + for_earlier_workers;
    const auto copy = run.job.library->copy(rank * threads + first_ + number);
    if (!copy) return fail({false, copy.failure().message});
    copies.push_back(*copy);
  }
  runner.set_launch(copies, run.job.launch, &run.earlier);
  // Blocks have no order. From the last on, what one writes in another one's place remains: not in
  // all launches, and in a launch again if it is repeated. Sanitizers' reports name the first
  // block.
  const bool backward = run.clusters % 2 == 0 && !run.job.library->summary().symbolized;
  for (;;) {
    const std::uint64_t begun = run.next++;
    if (begun >= run.clusters) return;
    const std::uint64_t i = backward ? run.clusters - 1 - begun : begun;
    const auto [x, y, z] = run.rows;
    const greta_host::Index first{
        static_cast<unsigned>(i % x) * of.x, static_cast<unsigned>(i / x % y) * of.y,
        static_cast<unsigned>(i / (static_cast<std::uint64_t>(x) * y)) * of.z};
    if (auto fault = runner.run(first)) return fail(std::move(*fault));
  }
}

std::optional<Fault> Executor::run(const Job& job, const std::atomic<bool>& cancelled,
                                   const std::function<void()>& earlier) {
  Run run(job, earlier, workers());
  std::unique_lock lock(mutex_);
  runs_.push_back(&run);
  if (run.clusters == 1 && run.workers == workers()) {
    more_.notify_one();
  } else {
    more_.notify_all();
  }
  const auto finished = [&] {
    return run.working == 0 && std::find(runs_.begin(), runs_.end(), &run) == runs_.end();
  };
  // A signal has no effect while a kernel's call is served, so it is sent repeatedly.
  while (!done_.wait_for(lock, std::chrono::milliseconds(20), finished)) {
    if (!cancelled) continue;
    run.next = run.clusters;
    for (const Worker& worker : workers_) {
      if (worker.run == &run) pthread_kill(worker.thread, stop_signal);
    }
  }
  return std::move(run.fault);
}

}  // namespace greta::device::hip::host
