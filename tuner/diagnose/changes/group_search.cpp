#include "tuner/diagnose/changes/group_search.hpp"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "tuner/compile/run_case.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int group_look_ms = 100;
constexpr std::chrono::seconds most_silence{90};     // of a process that has a group
constexpr std::chrono::seconds most_silent_run{20};  // of a process that runs changes
constexpr std::chrono::seconds most_first_run{60};   // in which the driver compiles, too
constexpr std::chrono::milliseconds least_time_of_run{400}, most_time_of_trial{3000};
constexpr int group_confirmations = 2;

/// What a process that compiles leaves to those that run.
struct Built {
  std::string device;
  std::string architecture;
  std::vector<std::vector<std::byte>> unchanged;  ///< code objects of the case's kernels
  std::vector<ChangeBuild> builds;
};

/// The time that a run may take, which the first process that runs a build finds out for the
/// others.
class SharedTime {
 public:
  SharedTime()
      : shared_(mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (shared_ == MAP_FAILED) throw Error("no memory for changed kernels");
  }
  ~SharedTime() { munmap(shared_, sizeof(std::int64_t)); }
  SharedTime(const SharedTime&) = delete;
  SharedTime& operator=(const SharedTime&) = delete;

  std::chrono::milliseconds get() const {
    std::int64_t time = 0;
    std::memcpy(&time, shared_, sizeof time);
    return std::chrono::milliseconds(time);
  }
  void set(std::chrono::milliseconds time) const {
    const std::int64_t count = time.count();
    std::memcpy(shared_, &count, sizeof count);
  }

 private:
  void* shared_;
};

/// Compiles a group into a file.
void build_into(const FailedCase& failed, const ChangeGroup& group, const SharedFile& file) {
  const DeviceInfo device = device_for_changes(failed.kernel).value();
  const auto compiler = create_probed_target(device, OpenOptions{}).value();
  std::vector<KernelSource> sources;
  for (const std::string& kept : failed.sources)
    sources.push_back(read_kept_source(kept, failed.kernel.language).value());
  const std::string id = device.id();
  file.put(id.data(), id.size());
  file.put(device.architecture.data(), device.architecture.size());
  const std::uint64_t count = sources.size();
  file.put(&count, sizeof count);
  for (const KernelSource& source : sources) {
    const auto code = compiler->compile(source).value().code_object;
    file.put(code.data(), code.size());
  }
  const auto builds = build_changes(*compiler, sources[group.kernel], group.changes);
  const std::uint64_t build_count = builds.size();
  file.put(&build_count, sizeof build_count);
  for (const ChangeBuild& build : builds) {
    file.put(build.numbers.data(), build.numbers.size() * sizeof(std::uint32_t));
    file.put(build.code_object.data(), build.code_object.size());
  }
}

Built read_built(SharedFile& file) {
  file.rewind();
  Built built;
  const auto id = file.get<char>(), architecture = file.get<char>();
  built.device.assign(id.begin(), id.end());
  built.architecture.assign(architecture.begin(), architecture.end());
  const auto kernels = file.get<std::uint64_t>().at(0);
  for (std::uint64_t i = 0; i < kernels; ++i) built.unchanged.push_back(file.get<std::byte>());
  const auto builds = file.get<std::uint64_t>().at(0);
  for (std::uint64_t i = 0; i < builds; ++i) {
    ChangeBuild& build = built.builds.emplace_back();
    build.numbers = file.get<std::uint32_t>();
    build.code_object = file.get<std::byte>();
  }
  return built;
}

/// Runs a case with the changes of a build, one at a time.
class BuildRuns {
 public:
  BuildRuns(const FailedCase& failed, std::size_t kernel, const Built& built,
            const ChangeBuild& build)
      : run_(failed.kernel), kernel_(kernel) {
    run_.architecture = built.architecture;
    run_.code_objects = built.unchanged;
    run_.code_objects[kernel] = build.code_object;
    device_ = open_device(built.device, OpenOptions{}).value();
    if (run_.language == Language::glsl) {
      for (CaseLaunch& launch : run_.launches) {
        if (launch.code_object == kernel) launch.arguments.emplace_back(std::uint32_t{0});
      }
      loaded_ = std::make_unique<LoadedCase>(*device_, run_);
    }
  }

  std::chrono::milliseconds time = most_time_of_trial;  ///< that a run with a change may take

  /// Whether the unchanged kernels fail as they did. The first run of a process takes longer than
  /// others, so that no change may be judged by it.
  bool fails_unchanged() { return result_of(0, most_first_run) == ChangeOutcome::wrong; }
  /// Sets the time by a run of the unchanged kernels.
  void measure() {
    const auto begin = Clock::now();
    static_cast<void>(result_of(0, most_time_of_trial));
    const auto taken =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin) * 10;
    time = std::clamp(taken, least_time_of_run, most_time_of_trial);
  }
  ChangeOutcome outcome_of(std::uint32_t number) {
    for (int i = 0; i <= group_confirmations; ++i) {
      const ChangeOutcome result = result_of(number, time);
      if (result != ChangeOutcome::correct_here) return result;
    }
    return ChangeOutcome::correct_here;
  }

 private:
  ChangeOutcome result_of(std::uint32_t number, Deadline deadline) {
    Result<std::string> wrong = std::string();
    if (loaded_) {
      for (CaseLaunch& launch : run_.launches) {
        if (launch.code_object == kernel_) launch.arguments.back() = number;
      }
      wrong = loaded_->run(deadline);
    } else {
      if (!choose_change(run_.code_objects[kernel_], number)) return ChangeOutcome::untried;
      wrong = run_case(*device_, run_, deadline);
    }
    return outcome_of_run(wrong);
  }

  KernelCase run_;
  std::size_t kernel_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LoadedCase> loaded_;
};

/// Runs the changes of a build from one on, and writes reports. Returns if one blocks the device.
void run_from(const FailedCase& failed, std::size_t kernel, const Built& built,
              const ChangeBuild& build, std::size_t next, const SharedTime& time, int descriptor) {
  BuildRuns runs(failed, kernel, built, build);
  if (!runs.fails_unchanged()) return;
  if (time.get().count() > 0) {
    runs.time = time.get();
  } else {
    runs.measure();
    time.set(runs.time);
  }
  Report report;
  if (write(descriptor, &report, sizeof report) != sizeof report) return;
  for (; next < build.numbers.size(); ++next) {
    report = {build.numbers[next], runs.outcome_of(build.numbers[next])};
    if (write(descriptor, &report, sizeof report) != sizeof report) return;
    if (report.outcome == ChangeOutcome::hangs) return;
  }
}

/// Waits for the first report of a process. Meanwhile, reports without a change say that the
/// group's process is at work. Returns whether there was one.
bool wait_for(TryingProcess& process, int descriptor) {
  pollfd wait{process.descriptor(), POLLIN, 0};
  while (poll(&wait, 1, 1000) <= 0) {
    const Report at_work;
    if (write(descriptor, &at_work, sizeof at_work) != sizeof at_work) return false;
  }
  return process.read_report().has_value();
}

/// Waits for a process, whose reports are written on. Returns the number of changes that were
/// tried, of which the last one may have ended the process; nothing if it was never ready.
std::optional<std::size_t> pass_reports(TryingProcess& process, int descriptor) {
  pollfd wait{process.descriptor(), POLLIN, 0};
  std::size_t count = 0;
  bool ready = false, blocks = false;
  while (!process.silent(ready ? most_silent_run : most_first_run)) {
    if (poll(&wait, 1, group_look_ms) <= 0) continue;
    const auto report = process.read_report();
    if (!report) break;
    ready = true;
    if (report->change != Report::none) ++count;
    blocks = report->change != Report::none && report->outcome == ChangeOutcome::hangs;
    if (write(descriptor, &*report, sizeof *report) != sizeof *report) break;
  }
  process.stop();
  if (!ready) return std::nullopt;
  return blocks ? count : count + 1;  // what ends the process has no report
}

/// Compiles a group and runs its changes, all in further processes: this one opens no device.
void try_group(const FailedCase& failed, const ChangeGroup& group, int descriptor) {
  SharedFile file;
  {
    TryingProcess builder(0, 1);
    const bool started = builder.start([&](std::size_t, std::size_t, int to) {
      try {
        build_into(failed, group, file);
        const Report done;
        static_cast<void>(!write(to, &done, sizeof done));
      } catch (const std::exception&) {
      }
    });
    if (!started || !wait_for(builder, descriptor)) return;
  }
  const Built built = read_built(file);
  for (const ChangeBuild& build : built.builds) {
    const SharedTime time;
    for (std::size_t next = 0; next < build.numbers.size();) {
      TryingProcess runner(next, 1);
      const bool started = runner.start([&](std::size_t from, std::size_t, int to) {
        try {
          run_from(failed, group.kernel, built, build, from, time, to);
        } catch (const std::exception&) {
        }
      });
      const auto count = started ? pass_reports(runner, descriptor) : std::nullopt;
      if (!count) break;
      next += *count;
    }
  }
}

}  // namespace

std::vector<ChangeOutcome> try_groups(const FailedCase& failed,
                                      const std::vector<ChangeGroup>& groups, std::size_t count,
                                      Clock::time_point end) {
  std::vector<ChangeOutcome> outcomes(count, ChangeOutcome::untried);
  const std::size_t width = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  std::vector<std::unique_ptr<TryingProcess>> processes;
  std::size_t next = 0;
  while (Clock::now() < end) {
    std::erase_if(processes, [](const auto& process) { return !process->runs(); });
    while (processes.size() < width && next < groups.size()) {
      auto process = std::make_unique<TryingProcess>(next++, 1);
      const bool started = process->start([&](std::size_t group, std::size_t, int descriptor) {
        try {
          try_group(failed, groups[group], descriptor);
        } catch (const std::exception&) {  // the changes stay untried
        }
      });
      if (started) processes.push_back(std::move(process));
    }
    if (processes.empty()) break;
    std::vector<pollfd> waits;
    for (const auto& process : processes) waits.push_back({process->descriptor(), POLLIN, 0});
    poll(waits.data(), waits.size(), group_look_ms);
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (waits[i].revents == 0) {
        if (processes[i]->silent(most_silence)) processes[i]->stop();
        continue;
      }
      const auto report = processes[i]->read_report();
      if (!report) {
        processes[i]->stop();
      } else if (report->change < outcomes.size()) {
        outcomes[report->change] = report->outcome;
      }
    }
  }
  return outcomes;
}

}  // namespace greta::tuner
