#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Limits the time that the calls of a scope may take before one of them counts as stalled, such as
/// a launch into a driver that hangs. No thread can end such a call, so the process is ended in the
/// way that was given to watch_for_stalls(). If that was not called, nothing happens. A scope
/// belongs to one thread. Of nested scopes, only the innermost counts.
class StallWatch {
 public:
  /// Begins a device call, which may take StallOptions::patience_s. Has no effect within another
  /// scope.
  StallWatch();
  /// Begins calls that return by themselves after the given number of seconds.
  /// StallOptions::margin_s is added.
  explicit StallWatch(double seconds);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// For calls without a time limit, such as compilers.
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

 private:
  void begin(double seconds);

  bool counts_ = false;
  std::int64_t left_ = 0;  ///< time left in the enclosing scope
};

struct StallOptions {
  double patience_s = 0;
  double margin_s = 0;
  std::function<void()> end;  ///< ends the process; called on a separate thread
};

/// Starts a thread that ends the process when a scope takes too long. Call it only once.
void watch_for_stalls(StallOptions options);

}  // namespace greta::device
