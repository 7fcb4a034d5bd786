#include "tuner/diagnose/changes/group_search.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <thread>

#include "kernels/launch/argument_block.hpp"
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
constexpr std::chrono::seconds most_compilation{60};
constexpr std::chrono::milliseconds least_time_of_run{400}, most_time_of_trial{3000};
constexpr int group_confirmations = 2;

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

/// Whether kernels may have one more argument: all Vulkan drivers take 128 bytes.
bool takes_an_argument(const KernelCase& run) {
  constexpr std::size_t most_bytes = 128;
  return std::all_of(run.launches.begin(), run.launches.end(), [](const CaseLaunch& launch) {
    kernels::ArgumentBlock block;
    for (const CaseArgument& argument : launch.arguments)
      block.add(argument, [](const CaseAddress&) { return std::uint64_t{0}; });
    return block.take().size() + sizeof(std::uint32_t) <= most_bytes;
  });
}

/// Compiles a group into a file.
void build_into(const FailedCase& failed, const ChangeGroup& group, const SharedFile& file) {
  const DeviceInfo device = device_for_changes(failed.kernel).value();
  const auto compiler = create_probed_target(device, OpenOptions{}).value();
  const auto source =
      read_kept_source(failed.sources[group.kernel], failed.kernel.language).value();
  const auto builds =
      build_changes(*compiler, source, group.changes, takes_an_argument(failed.kernel));
  const std::uint64_t build_count = builds.size();
  file.put(&build_count, sizeof build_count);
  for (const ChangeBuild& build : builds) {
    file.put(build.numbers.data(), build.numbers.size() * sizeof(std::uint32_t));
    file.put(build.code_object.data(), build.code_object.size());
    file.put(&build.as_argument, sizeof build.as_argument);
  }
}

std::vector<ChangeBuild> read_builds(SharedFile& file) {
  file.rewind();
  std::vector<ChangeBuild> all;
  const auto builds = file.get<std::uint64_t>().at(0);
  for (std::uint64_t i = 0; i < builds; ++i) {
    ChangeBuild& build = all.emplace_back();
    build.numbers = file.get<std::uint32_t>();
    build.code_object = file.get<std::byte>();
    build.as_argument = file.get<char>().at(0) != 0;
  }
  return all;
}

/// Runs a case with the changes of a build, one at a time.
class BuildRuns {
 public:
  BuildRuns(const FailedCase& failed, std::size_t kernel, const BuiltCase& built,
            const ChangeBuild& build)
      : run_(failed.kernel), kernel_(kernel), as_argument_(build.as_argument) {
    run_.architecture = built.architecture;
    run_.code_objects = built.unchanged;
    run_.code_objects[kernel] = build.code_object;
    device_ = open_device(built.device, OpenOptions{}).value();
    if (!as_argument_) return;
    for (CaseLaunch& launch : run_.launches) {
      if (launch.code_object == kernel) launch.arguments.emplace_back(std::uint32_t{0});
    }
    loaded_ = std::make_unique<LoadedCase>(*device_, run_);
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
    if (as_argument_) {
      for (CaseLaunch& launch : run_.launches) {
        if (launch.code_object == kernel_) launch.arguments.back() = number;
      }
      return outcome_of_run(loaded_->run(deadline));
    }
    if (!choose_change(run_.code_objects[kernel_], number)) return ChangeOutcome::untried;
    return outcome_of_run(run_case(*device_, run_, deadline));
  }

  KernelCase run_;
  std::size_t kernel_;
  bool as_argument_;  ///< whether the number of a change is the kernel's last argument
  std::unique_ptr<Device> device_;
  std::unique_ptr<LoadedCase> loaded_;  ///< if only arguments differ between changes
};

/// Runs the changes of a build from one on, and writes reports. Returns if one blocks the device.
void run_from(const FailedCase& failed, std::size_t kernel, const BuiltCase& built,
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

/// Runs the changes of a build. Returns false if the unchanged kernels don't fail in it.
bool run_build(const FailedCase& failed, std::size_t kernel, const BuiltCase& built,
               const ChangeBuild& build, int descriptor) {
  const SharedTime time;
  for (std::size_t next = 0; next < build.numbers.size();) {
    TryingProcess runner(next, 1);
    const bool started = runner.start([&](std::size_t from, std::size_t, int to) {
      try {
        run_from(failed, kernel, built, build, from, time, to);
      } catch (const std::exception&) {
      }
    });
    const auto count = started ? pass_reports(runner, descriptor) : std::nullopt;
    if (!count) return next > 0;
    next += *count;
  }
  return true;
}

/// Compiles a group and runs its changes, all in further processes: this one opens no device. What
/// a compiler makes of a fault, as of an index that is out of range, may differ with the versions
/// at its place, so that the unchanged kernels are correct. Such a group is divided until the place
/// is alone.
void try_group(const FailedCase& failed, const BuiltCase& built, const ChangeGroup& group,
               int descriptor) {
  SharedFile file;
  if (!compile_group(failed, group, file, descriptor)) return;
  for (const ChangeBuild& build : read_builds(file)) {
    if (run_build(failed, group.kernel, built, build, descriptor)) continue;
    ChangeGroup rest{group.kernel, {}};
    for (const SlottedChange& one : group.changes) {
      if (std::find(build.numbers.begin(), build.numbers.end(), one.number) != build.numbers.end())
        rest.changes.push_back(one);
    }
    std::stable_sort(rest.changes.begin(), rest.changes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.slot.start, a.slot.end) < std::pair(b.slot.start, b.slot.end);
    });
    const auto middle = rest.changes.begin() + static_cast<std::ptrdiff_t>(rest.changes.size() / 2);
    const bool one_place = rest.changes.front().slot == rest.changes.back().slot;
    if (one_place) {
      for (const SlottedChange& one : rest.changes) {
        const Report report{one.number, ChangeOutcome::unclear};
        if (write(descriptor, &report, sizeof report) != sizeof report) return;
      }
    } else {
      try_group(failed, built, {group.kernel, {rest.changes.begin(), middle}}, descriptor);
      try_group(failed, built, {group.kernel, {middle, rest.changes.end()}}, descriptor);
    }
  }
}

/// Returns the lines of a source that a compiler's messages call errors.
std::set<std::ptrdiff_t> error_lines(const std::string& log) {
  static const std::regex error(":(\\d{1,7}):\\d+: (fatal )?error");
  std::set<std::ptrdiff_t> lines;
  for (auto at = std::sregex_iterator(log.begin(), log.end(), error); at != std::sregex_iterator();
       ++at)
    lines.insert(std::stol((*at)[1]));
  return lines;
}

/// Compiles a kernel with marks of all slots but those at which it does not compile. The latter
/// count as executed. Returns nothing if no such kernel compiles.
std::optional<std::vector<std::byte>> built_with_marks(const KernelCase& run,
                                                       const KernelSource& source,
                                                       const std::vector<ChangeSlot>& slots,
                                                       char* marks) {
  constexpr int most_passes = 6;
  const DeviceInfo device = device_for_changes(run).value();
  const auto compiler = create_probed_target(device, OpenOptions{}).value();
  const auto line_at = [&](std::size_t at) {
    return 1 + std::count(source.text.begin(),
                          source.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  };
  std::vector<char> without(slots.size(), 0);
  for (int pass = 0; pass < most_passes; ++pass) {
    KernelSource marked = source;
    marked.text = text_with_marks(source, slots, without);
    auto compiled = compiler->compile(marked);
    if (compiled) return std::move(compiled->code_object);
    const auto lines = error_lines(compiled.failure().log);
    if (lines.empty()) break;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (lines.contains(line_at(slots[i].start)) || lines.contains(line_at(slots[i].end)))
        without[i] = marks[i] = 1;
    }
  }
  return std::nullopt;
}

/// What the process does.
void mark(const FailedCase& failed, const BuiltCase& built, std::size_t kernel,
          const std::vector<ChangeSlot>& slots, char* marks) {
  constexpr std::chrono::seconds most_time_of_run{20};
  KernelCase run = failed.kernel;
  const auto source = read_kept_source(failed.sources[kernel], run.language).value();
  auto code = built_with_marks(run, source, slots, marks);
  if (!code || !choose_marks(*code, marks)) return;
  run.architecture = built.architecture;
  run.code_objects = built.unchanged;
  run.code_objects[kernel] = *std::move(code);
  const auto device = open_device(built.device, OpenOptions{}).value();
  marks[slots.size()] = 1;
  static_cast<void>(run_case(*device, run, most_time_of_run));
}

}  // namespace

void BuiltCase::write(const SharedFile& file) const {
  file.put(device.data(), device.size());
  file.put(architecture.data(), architecture.size());
  for (const auto& code : unchanged) file.put(code.data(), code.size());
}

void BuiltCase::read(SharedFile& file, std::size_t kernels) {
  file.rewind();
  const auto id = file.get<char>(), target = file.get<char>();
  device.assign(id.begin(), id.end());
  architecture.assign(target.begin(), target.end());
  unchanged.clear();
  for (std::size_t i = 0; i < kernels; ++i) unchanged.push_back(file.get<std::byte>());
}

std::vector<std::vector<char>> executed_slots(const FailedCase& failed, const BuiltCase& built,
                                              const std::vector<std::vector<ChangeSlot>>& slots,
                                              std::chrono::steady_clock::time_point end) {
  std::vector<std::vector<char>> executed;
  for (const auto& all : slots) executed.emplace_back(all.size(), 1);
  if (failed.kernel.language != Language::hip) return executed;
  for (std::size_t kernel = 0; kernel < slots.size() && Clock::now() < end; ++kernel) {
    const std::size_t count = slots[kernel].size();
    const SharedMemory marks(count + 1);
    TryingProcess process(0, 1);
    const bool started = process.start([&](std::size_t, std::size_t, int) {
      try {
        mark(failed, built, kernel, slots[kernel], marks.data());
      } catch (const std::exception&) {  // what is not known counts as executed
      }
    });
    pollfd wait{process.descriptor(), POLLIN, 0};
    while (started && Clock::now() < end && poll(&wait, 1, group_look_ms) <= 0) {
    }
    process.stop();
    const bool ran = marks.data()[count] != 0 &&
                     std::any_of(marks.data(), marks.data() + count, [](char c) { return c != 0; });
    if (ran) executed[kernel].assign(marks.data(), marks.data() + count);
  }
  return executed;
}

std::vector<ChangeOutcome> try_groups(const FailedCase& failed, const BuiltCase& built,
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
          try_group(failed, built, groups[group], descriptor);
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
