#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "tuner/diagnose/changes/change_effects.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"

namespace greta::tuner {

/// Milliseconds after which the time is looked at again, where a process is waited for.
inline constexpr int look_ms = 100;

/// What a process writes of a change.
struct Report {
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  std::uint32_t change = none;  ///< none: the process is ready to try changes
  ChangeOutcome outcome{};
  ChangeEffect effect{};
};

/// A process that tries every `step`-th change, the first one `next`.
class TryingProcess {
 public:
  using Clock = std::chrono::steady_clock;

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
      setenv("GALLIVM_PERF", "nopt", 0);  // lavapipe compiles faster, and results are the same
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
  bool silent(std::chrono::seconds most = std::chrono::seconds(40)) const {
    return Clock::now() - heard_ > most;
  }
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

}  // namespace greta::tuner
