#include "tuner/diagnose/changes/group_search.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "tuner/diagnose/changes/build_runs.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds most_silence{90};     // of a process that has a group
constexpr std::chrono::seconds most_silent_run{60};  // of a process that runs changes
constexpr std::chrono::seconds most_first_run{60};   // in which the driver compiles, too
constexpr std::chrono::seconds most_compilation{60};

/// The time that a run may take, which the first process that runs a build finds out for the
/// others.
class SharedTime {
 public:
  std::chrono::milliseconds get() const {
    std::int64_t time = 0;
    std::memcpy(&time, shared_.data(), sizeof time);
    return std::chrono::milliseconds(time);
  }
  void set(std::chrono::milliseconds time) const {
    const std::int64_t count = time.count();
    std::memcpy(shared_.data(), &count, sizeof count);
  }

 private:
  SharedMemory shared_{sizeof(std::int64_t)};
};

/// Compiles the changes of a kernel into a file.
void build_into(const FailedCase& failed, const KernelGroup& group, TargetCompiler& compiler,
                const SharedFile& file) {
  const auto source =
      read_kept_source(failed.sources[group.kernel], failed.kernel.language).value();
  const auto builds = build_changes(compiler, source, group.changes);
  const std::uint64_t build_count = builds.size();
  file.put(&build_count, sizeof build_count);
  for (const ChangeBuild& build : builds) {
    file.put(build.numbers.data(), build.numbers.size() * sizeof(std::uint32_t));
    file.put(build.code_object.data(), build.code_object.size());
    file.put(&build.as_constant, sizeof build.as_constant);
  }
}

/// Compiles a group into a file.
void build_into(const FailedCase& failed, const ChangeGroup& group, const SharedFile& file) {
  const DeviceInfo device = device_for_changes(failed.kernel).value();
  const auto compiler = create_probed_target(device, OpenOptions{}).value();
  build_into(failed, static_cast<const KernelGroup&>(group), *compiler, file);
  for (const KernelGroup& other : group.others) build_into(failed, other, *compiler, file);
}

std::vector<ChangeBuild> read_builds(SharedFile& file) {
  std::vector<ChangeBuild> all;
  const auto builds = file.get<std::uint64_t>().at(0);
  for (std::uint64_t i = 0; i < builds; ++i) {
    ChangeBuild& build = all.emplace_back();
    build.numbers = file.get<std::uint32_t>();
    build.code_object = file.get<std::byte>();
    build.as_constant = file.get<char>().at(0) != 0;
  }
  return all;
}

/// Returns the largest build of each of a group's other kernels.
std::vector<KernelBuild> read_others(SharedFile& file, const ChangeGroup& group) {
  std::vector<KernelBuild> others;
  for (const KernelGroup& other : group.others) {
    std::vector<ChangeBuild> builds = read_builds(file);
    const auto largest = std::max_element(
        builds.begin(), builds.end(),
        [](const auto& a, const auto& b) { return a.numbers.size() < b.numbers.size(); });
    if (largest != builds.end()) others.push_back({other.kernel, std::move(*largest)});
  }
  return others;
}

/// Runs the changes of a build from one on, and writes reports. Returns if one blocks the device.
void run_from(const FailedCase& failed, const BuiltCase& built,
              const std::vector<KernelBuild>& builds, std::size_t next, const SharedTime& time,
              int descriptor) {
  BuildRuns runs(failed, built, builds);
  const ChangeBuild& build = builds.front().build;
  if (!runs.fails_unchanged(most_first_run)) return;
  if (time.get().count() > 0) {
    runs.time = time.get();
  } else {
    runs.measure();
    time.set(runs.time);
  }
  Report report;
  if (write(descriptor, &report, sizeof report) != sizeof report) return;
  for (; next < build.numbers.size(); ++next) {
    report = {build.numbers[next], runs.outcome_of(build.numbers[next]), {}};
    if (report.outcome == ChangeOutcome::wrong) report.effect = runs.last_effect();
    if (write(descriptor, &report, sizeof report) != sizeof report) return;
    if (report.outcome == ChangeOutcome::hangs) return;
  }
}

/// Waits for the first report of a process. Meanwhile, reports without a change say that the
/// group's process is at work. Returns whether there was one in time.
bool wait_for(TryingProcess& process, int descriptor) {
  pollfd wait{process.descriptor(), POLLIN, 0};
  const auto end = Clock::now() + most_compilation;
  while (poll(&wait, 1, 1000) <= 0) {
    if (Clock::now() > end) return false;
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
    if (poll(&wait, 1, look_ms) <= 0) continue;
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

/// Compiles a group in a further process. Returns whether it did so in time.
bool compile_group(const FailedCase& failed, const ChangeGroup& group, const SharedFile& file,
                   int descriptor) {
  TryingProcess builder(0, 1);
  const bool started = builder.start([&](std::size_t, std::size_t, int to) {
    try {
      build_into(failed, group, file);
      const Report done;
      static_cast<void>(!write(to, &done, sizeof done));
    } catch (const std::exception&) {
    }
  });
  return started && wait_for(builder, descriptor);
}

/// Runs the changes of the first build, with the others. Returns false if the unchanged kernels
/// don't fail in them.
bool run_builds(const FailedCase& failed, const BuiltCase& built,
                const std::vector<KernelBuild>& builds, int descriptor) {
  const SharedTime time;
  for (std::size_t next = 0; next < builds.front().build.numbers.size();) {
    TryingProcess runner(next, 1);
    const bool started = runner.start([&](std::size_t from, std::size_t, int to) {
      try {
        run_from(failed, built, builds, from, time, to);
      } catch (const std::exception&) {
      }
    });
    const auto count = started ? pass_reports(runner, descriptor) : std::nullopt;
    if (!count) return next > 0;
    next += *count;
  }
  return true;
}

/// Returns those changes of a group whose numbers are accepted.
template <typename Accept>
ChangeGroup part_of(const ChangeGroup& group, const Accept& accept) {
  const auto take = [&](const KernelGroup& from, KernelGroup& to) {
    to.kernel = from.kernel;
    for (const SlottedChange& one : from.changes) {
      if (accept(one.number)) to.changes.push_back(one);
    }
  };
  ChangeGroup part;
  take(group, part);
  for (const KernelGroup& other : group.others) take(other, part.others.emplace_back());
  return part;
}

/// Compiles a group and runs its changes, all in further processes: this one opens no device. What
/// a compiler makes of a fault, as of an index that is out of range, may differ with the versions
/// at its place, so that the unchanged kernels are correct. Such a group is divided until the place
/// is alone.
void try_group(const FailedCase& failed, const BuiltCase& built, const ChangeGroup& group,
               int descriptor) {
  SharedFile file;
  if (!compile_group(failed, group, file, descriptor)) return;
  file.rewind();
  const auto own = read_builds(file);
  const auto others = read_others(file, group);
  for (const ChangeBuild& build : own) {
    std::vector<KernelBuild> builds{{group.kernel, build}};
    builds.insert(builds.end(), others.begin(), others.end());
    if (run_builds(failed, built, builds, descriptor)) continue;
    ChangeGroup rest = part_of(group, [&](std::uint32_t number) {
      return std::find(build.numbers.begin(), build.numbers.end(), number) != build.numbers.end();
    });
    std::stable_sort(rest.changes.begin(), rest.changes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.slot.start, a.slot.end) < std::pair(b.slot.start, b.slot.end);
    });
    const bool one_place = rest.changes.front().slot == rest.changes.back().slot;
    if (one_place) {
      for (const SlottedChange& one : rest.changes) {
        const Report report{one.number, ChangeOutcome::unclear, {}};
        if (write(descriptor, &report, sizeof report) != sizeof report) return;
      }
    } else {
      std::set<std::uint32_t> first;
      for (std::size_t i = 0; i < rest.changes.size() / 2; ++i)
        first.insert(rest.changes[i].number);
      for (const bool half : {true, false}) {
        try_group(
            failed, built,
            part_of(rest, [&](std::uint32_t number) { return first.contains(number) == half; }),
            descriptor);
      }
    }
  }
}

}  // namespace

std::vector<TriedChange> try_groups(const FailedCase& failed, const BuiltCase& built,
                                    const std::vector<ChangeGroup>& groups, std::size_t count,
                                    Clock::time_point end) {
  std::vector<TriedChange> outcomes(count);
  const std::size_t width = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  std::vector<std::unique_ptr<TryingProcess>> processes;
  std::size_t next = 0;
  while (Clock::now() < end) {
    std::erase_if(processes, [](const auto& process) { return !process->runs(); });
    while (processes.size() < width && next < groups.size()) {
      auto process = std::make_unique<TryingProcess>(next++, 1);
      const bool started = process->start([&](std::size_t group, std::size_t, int descriptor) {
        try {
          try_group(failed, built, groups[group], descriptor);
        } catch (const std::exception&) {  // the changes stay untried
        }
      });
      if (started) processes.push_back(std::move(process));
    }
    if (processes.empty()) break;
    std::vector<pollfd> waits;
    for (const auto& process : processes) waits.push_back({process->descriptor(), POLLIN, 0});
    poll(waits.data(), waits.size(), look_ms);
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (waits[i].revents == 0) {
        if (processes[i]->silent(most_silence)) processes[i]->stop();
        continue;
      }
      const auto report = processes[i]->read_report();
      if (!report) {
        processes[i]->stop();
      } else if (report->change < outcomes.size()) {
        outcomes[report->change] = {report->outcome, report->effect};
      }
    }
  }
  return outcomes;
}

}  // namespace greta::tuner
