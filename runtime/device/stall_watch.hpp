#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Says how long the calls of a scope may take until one of them is taken for one that never
/// returns, as a launch into a driver that hangs. No thread can end such a call, so the process
/// ends then, in the way that watch_for_stalls() was given; where that was not called, nothing
/// happens. A scope is of one thread. Within a scope of a scope only the inner one counts.
class StallWatch {
 public:
  /// A call of the device, which may take StallOptions::patience_s. Within another scope it is none
  /// of its own.
  StallWatch();
  /// Calls that end by themselves after so many seconds: StallOptions::margin_s is added.
  explicit StallWatch(double seconds);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// For what may take any time, as compilers.
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

 private:
  void begin(double seconds);

  bool counts_ = false;
  std::int64_t left_ = 0;  ///< of the scope around it
};

struct StallOptions {
  double patience_s = 0;
  double margin_s = 0;
  std::function<void()> end;  ///< ends the process; called in a thread of its own
};

/// From now on scopes that take too long end the process. To be called once.
void watch_for_stalls(StallOptions options);

}  // namespace greta::device
