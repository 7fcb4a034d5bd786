#include "tuner/bench/undisturbed.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>

#include "runtime/device/system/input_file.hpp"

namespace greta::tuner {
namespace {

constexpr double tolerable = 0.02;  // waiting time as a fraction of a sample
// A sample longer than a scheduler time slice is rarely undisturbed, so it is taken once.
constexpr double longest_us = 5000;

// Only other threads matter when kernels are timed. There, each attempt needs another cache flush.
int most_attempts(Waiting waiting) {
  return waiting == Waiting::other_threads ? 2 : 4;
}

}  // namespace

ThreadTimes thread_times(Waiting waiting) {
  const std::string own = std::to_string(gettid());
  ThreadTimes times;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    if (waiting == Waiting::other_threads && task.path().filename() == own) continue;
    std::istringstream in(read_system_file(task.path() / "schedstat"));
    double running = 0, waited = 0;
    if (!(in >> running >> waited)) continue;
    times.ran_us += running / 1e3;
    times.waited_us += waited / 1e3;
  }
  return times;
}

Result<double> undisturbed(const std::function<Result<double>()>& take, Waiting waiting) {
  return undisturbed([] { return Result<void>{}; }, take, waiting);
}

Result<double> undisturbed(const std::function<Result<void>()>& prepare,
                           const std::function<Result<double>()>& take, Waiting waiting) {
  double best_us = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < most_attempts(waiting); ++attempt) {
    if (auto ready = prepare(); !ready) return ready.failure();
    const double before = thread_times(waiting).waited_us;
    const auto us = take();
    if (!us) return us;
    const double waited = std::max(0.0, thread_times(waiting).waited_us - before);
    if (waited < least) {
      least = waited;
      best_us = *us;
    }
    if (waited <= tolerable * *us || *us > longest_us) break;
  }
  return best_us;
}

}  // namespace greta::tuner
