#pragma once

#include <functional>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// Whose waiting for a processor disturbs a sample: a device that computes on the CPU has threads
/// of its own, and the calling thread matters where the host's clock is read.
enum class Waiting { other_threads, all_threads };

/// What threads of this process did so far, as the system counts it; 0 where it does not.
struct ThreadTimes {
  double ran_us = 0;     ///< on a processor
  double waited_us = 0;  ///< for one
};
ThreadTimes thread_times(Waiting waiting);

/// Takes a sample, and takes it again while some thread of this process had to wait for a processor
/// meanwhile, a few times at most; the one with the least waiting counts. `take` returns what it
/// lasted, µs. Where the system does not tell (/proc/self/task/…/schedstat), the first one counts.
Result<double> undisturbed(const std::function<Result<double>()>& take, Waiting waiting);
/// The same; `prepare` is done before each attempt, and may be disturbed.
Result<double> undisturbed(const std::function<Result<void>()>& prepare,
                           const std::function<Result<double>()>& take, Waiting waiting);

}  // namespace greta::tuner
