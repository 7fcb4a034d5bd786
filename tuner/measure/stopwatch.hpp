#pragma once

#include <chrono>

#include "runtime/device/device.hpp"

namespace greta::tuner {

/// Measures the wall time since its construction.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Adds the wall time of its scope to a total, in seconds.
class Lap {
 public:
  explicit Lap(double& total) : total_(total) {}
  ~Lap() { total_ += watch_.seconds(); }
  Lap(const Lap&) = delete;
  Lap& operator=(const Lap&) = delete;

 private:
  double& total_;
  Stopwatch watch_;
};

inline Deadline deadline_of(double seconds) {
  return std::chrono::duration_cast<Deadline>(std::chrono::duration<double>(seconds));
}

}  // namespace greta::tuner
