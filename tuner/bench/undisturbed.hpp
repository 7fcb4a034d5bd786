#pragma once

#include <functional>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// The threads whose waiting for a core disturbs a sample. A device that computes on the CPU has
/// its own threads; the calling thread matters if the host's clock is read.
enum class Waiting { other_threads, all_threads };

/// Accumulated times of this process's threads as reported by the system; 0 if it reports none.
struct ThreadTimes {
  double ran_us = 0;     ///< time on a core
  double waited_us = 0;  ///< time waiting for a core
};
ThreadTimes thread_times(Waiting waiting);

/// Takes a sample, and repeats it a limited number of times while some thread of this process had
/// to wait for a core. Returns the sample with the least waiting. `take` returns the duration in
/// µs. If the system reports no waiting times (/proc/self/task/…/schedstat), the first sample
/// counts.
Result<double> undisturbed(const std::function<Result<double>()>& take, Waiting waiting);
/// Like the above; `prepare` runs before each attempt and may be disturbed.
Result<double> undisturbed(const std::function<Result<void>()>& prepare,
                           const std::function<Result<double>()>& take, Waiting waiting);

}  // namespace greta::tuner
