#include "tuner/measure/stall_watch.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>

namespace greta {
namespace {

std::optional<double> margin;

itimerval timer_of(double seconds) {
  const double whole = std::floor(seconds);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  // Zero would stop the timer.
  timer.it_value.tv_usec = std::max<suseconds_t>(1, static_cast<int>((seconds - whole) * 1e6));
  return timer;
}

}  // namespace

StallWatch::StallWatch(double seconds) {
  if (!margin) return;
  const itimerval timer = timer_of(seconds + *margin);
  setitimer(ITIMER_REAL, &timer, &outer_);
}

StallWatch::~StallWatch() {
  if (margin) setitimer(ITIMER_REAL, &outer_, nullptr);
}

void end_when_stalled(double margin_s) {
  std::signal(SIGALRM, SIG_DFL);
  margin = margin_s;
}

}  // namespace greta
