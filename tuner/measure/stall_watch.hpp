#pragma once

#include <sys/time.h>

namespace greta {

/// Says how long the calls of a scope may take until one of them is taken for one that never
/// returns, as a launch into a driver that hangs. No thread can end such a call, so this process
/// ends then (SIGALRM), where end_when_stalled() was called; elsewhere nothing happens. Within a
/// scope of a scope only the inner one counts.
class StallWatch {
 public:
  explicit StallWatch(double seconds);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

 private:
  itimerval outer_{};
};

/// For a worker process, whose session starts another one. `margin_s` is added to all times.
void end_when_stalled(double margin_s);

}  // namespace greta
