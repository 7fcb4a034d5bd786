#include "tuner/diagnose/changes/change_search.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/changes/kernel_text.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds most_silence{40};  // of a process: it opens a device and compiles
constexpr int look_ms = 100;
constexpr char ready_mark = '+';  // the kernels are compiled, and the device is open

struct Report {
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  std::uint32_t change = none;  ///< none: the process is ready to try changes
  ChangeOutcome outcome{};
};

/// A process that tries every `step`-th change, the first one `next`.
class TryingProcess {
 public:
  TryingProcess(std::size_t next, std::size_t step) : next_(next), step_(step) {}
  ~TryingProcess() { stop(); }
  TryingProcess(const TryingProcess&) = delete;
  TryingProcess& operator=(const TryingProcess&) = delete;

  /// Starts the process, in which `body(next, step, descriptor)` writes reports.
  template <typename Body>
  bool start(const Body& body) {
    ready_ = tries_ = false;
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      const rlimit no_core_dump{0, 0};
      setrlimit(RLIMIT_CORE, &no_core_dump);
      std::signal(SIGINT, SIG_DFL);
      std::signal(SIGTERM, SIG_DFL);
      dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
      body(next_, step_, ends[1]);
      _exit(0);
    }
    close(ends[1]);
    reading_ = ends[0];
    heard_ = Clock::now();
    if (pid_ > 0) return true;
    stop();
    return false;
  }
  /// Kills the process if it runs, and waits for it.
  void stop() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (reading_ >= 0) close(reading_);
    pid_ = 0;
    reading_ = -1;
  }

  bool runs() const { return pid_ > 0; }
  /// Returns whether it may be started: not if it was never ready in a few starts.
  bool may_start() const { return failed_starts_ < most_failed_starts; }
  int descriptor() const { return reading_; }
  std::size_t next() const { return next_; }
  bool silent() const { return Clock::now() - heard_ > most_silence; }
  /// Returns the next report; nothing if the process has ended.
  std::optional<Report> read_report() {
    Report report;
    ssize_t count = 0;
    while ((count = ::read(reading_, &report, sizeof report)) < 0 && errno == EINTR) {
    }
    if (count != sizeof report) return std::nullopt;
    heard_ = Clock::now();
    ready_ = true;
    tries_ = report.outcome != ChangeOutcome::hangs;
    if (report.change != Report::none) next_ = report.change + step_;
    return report;
  }
  /// Stops the process, which has ended or is silent. Returns whether a change is why, after which
  /// the next process goes on.
  bool stop_and_skip() {
    stop();
    if (!ready_) ++failed_starts_;
    if (ready_ && tries_) next_ += step_;
    return ready_ && tries_;
  }

 private:
  static constexpr int most_failed_starts = 3;

  std::size_t next_, step_;
  bool ready_ = false, tries_ = false;  ///< has reported; is trying a change
  int failed_starts_ = 0;
  pid_t pid_ = 0;
  int reading_ = -1;
  Clock::time_point heard_;
};

/// Returns why a case can't be run again with changes; empty: it can. A process of its own opens
/// the device, since a driver's threads don't live on in the processes that are forked later.
std::string reason_against(const Catalog& catalog, const FailedCase& failed) {
  TryingProcess process(0, 1);
  const bool started = process.start([&](std::size_t, std::size_t, int descriptor) {
    std::string why;
    try {
      ChangeTrials trials(catalog, failed);
      static_cast<void>(!write(descriptor, &ready_mark, 1));  // what ends the process now fails
      if (!trials.fails_unchanged()) why = "the unchanged source gives correct results here";
    } catch (const std::exception& error) {
      why = error.what();
    }
    why += '\n';
    static_cast<void>(!write(descriptor, why.data(), why.size()));
  });
  if (!started) return "no process to try changes of the source in";
  std::string why;
  pollfd wait{process.descriptor(), POLLIN, 0};
  while (!process.silent()) {
    if (poll(&wait, 1, look_ms) <= 0) continue;
    std::array<char, 4096> block{};
    const auto count = ::read(process.descriptor(), block.data(), block.size());
    if (count <= 0) break;
    why.append(block.data(), static_cast<std::size_t>(count));
  }
  const bool ready = why.starts_with(ready_mark);
  if (!why.ends_with('\n')) return ready ? "" : "the case's kernel can't be compiled and run again";
  return why.substr(ready ? 1 : 0, why.size() - (ready ? 2 : 1));
}

class Search {
 public:
  Search(const Catalog& catalog, const FailedCase& failed, double seconds)
      : catalog_(catalog),
        failed_(failed),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {
    for (std::size_t i = 0; i < failed.sources.size(); ++i) {
      const KernelSource source =
          read_kept_source(failed.sources[i], failed.kernel.language).value();
      texts_.push_back(source.text);
      for (SourceChange& change : changes_of(texts_.back(), source.entry))
        changes_.push_back({i, std::move(change)});
    }
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const auto& a, const auto& b) { return a.change.rank < b.change.rank; });
  }

  ChangeSearch run() {
    ChangeSearch result;
    result.changes = changes_.size();
    const std::size_t count = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
    std::vector<std::unique_ptr<TryingProcess>> processes;
    for (std::size_t i = 0; i < count; ++i)
      processes.push_back(std::make_unique<TryingProcess>(i, count));
    while (Clock::now() < end_) {
      std::vector<pollfd> waits;
      for (const auto& process : processes) {
        if (!process->runs() && process->may_start() && process->next() < limit()) start(*process);
        if (process->runs()) waits.push_back({process->descriptor(), POLLIN, 0});
      }
      if (waits.empty()) break;
      poll(waits.data(), waits.size(), look_ms);
      for (const auto& process : processes) {
        const auto ready = std::find_if(waits.begin(), waits.end(), [&](const pollfd& one) {
          return one.fd == process->descriptor() && one.revents != 0;
        });
        if (process->runs()) serve(*process, ready != waits.end(), result);
      }
    }
    result.all = std::none_of(processes.begin(), processes.end(), [&](const auto& process) {
      return process->next() < changes_.size();
    });
    if (best_ < changes_.size()) result.found = described(changes_[best_]);
    if (result.found) result.found->with_others = best_outcome_ == ChangeOutcome::correct;
    return result;
  }

 private:
  /// The changes before which a process goes on: after a correct one, only earlier ones matter.
  std::size_t limit() const { return std::min(best_, changes_.size()); }

  void start(TryingProcess& process) {
    const bool started = process.start([this](std::size_t next, std::size_t step, int descriptor) {
      try_from(next, step, descriptor);
    });
    if (!started) throw Error("no process to try changes of the source in");
  }

  /// What a process does.
  void try_from(std::size_t next, std::size_t step, int descriptor) {
    try {
      ChangeTrials trials(catalog_, failed_);
      const Report ready;
      if (write(descriptor, &ready, sizeof ready) != sizeof ready) return;
      for (std::size_t i = next; i < changes_.size(); i += step) {
        const Report report{static_cast<std::uint32_t>(i), trials.outcome_of(changes_[i])};
        if (write(descriptor, &report, sizeof report) != sizeof report) return;
        if (report.outcome == ChangeOutcome::hangs) return;
      }
    } catch (const std::exception&) {  // its end says so
    }
  }

  void serve(TryingProcess& process, bool ready, ChangeSearch& result) {
    if (ready) {
      const auto report = process.read_report();
      if (!report) {
        if (process.next() >= limit()) {
          process.stop();
        } else if (process.stop_and_skip()) {
          ++result.tried;
        }
        return;
      }
      if (report->change == Report::none) return;
      ++result.tried;
      if (report->outcome != ChangeOutcome::refused) ++result.compiled;
      if (report->outcome >= ChangeOutcome::correct_here && report->change < best_) {
        best_ = report->change;
        best_outcome_ = report->outcome;
      }
      if (process.next() >= limit()) process.stop();
    } else if (process.silent() && process.stop_and_skip()) {
      ++result.tried;
    }
  }

  FoundChange described(const KernelChange& one) const {
    const std::string& text = texts_[one.kernel];
    const SourceChange& change = one.change;
    FoundChange found;
    found.kind = change.kind;
    found.kernel = kept_source_file(one.kernel, failed_.kernel.language);
    const auto lines_before =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(change.start), '\n');
    found.line = static_cast<std::size_t>(lines_before) + 2;  // the comment on the launch is first
    found.before = text.substr(change.start, change.length);
    found.after = change.by;
    const std::string changed = change.applied_to(text);
    const auto begin = changed.rfind('\n', change.start) + 1;
    const auto end = changed.find('\n', change.start + change.by.size());
    found.text = changed.substr(begin, end - begin);
    found.text.erase(0, found.text.find_first_not_of(" \t\n"));
    return found;
  }

  const Catalog& catalog_;
  const FailedCase& failed_;
  Clock::time_point end_;
  std::vector<std::string> texts_;
  std::vector<KernelChange> changes_;
  std::size_t best_ = static_cast<std::size_t>(-1);  ///< the first change that is correct
  ChangeOutcome best_outcome_{};
};

}  // namespace

Result<ChangeSearch> search_change(const Catalog& catalog, const FailedCase& failed,
                                   double seconds) {
  if (failed.sources.empty() || failed.kernel.launches.empty())
    return Failure{Status::unavailable, "the case has no source that can be run again", {}};
  try {
    if (const std::string why = reason_against(catalog, failed); !why.empty())
      return Failure{Status::unavailable, why, {}};
    return Search(catalog, failed, seconds).run();
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

}  // namespace greta::tuner
