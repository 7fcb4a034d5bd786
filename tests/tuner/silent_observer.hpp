#pragma once

#include <atomic>

#include "tests/layers.hpp"
#include "tuner/session/session.hpp"

namespace greta::test {

/// Ignores all events, and can stop a session after a number of trials.
class SilentObserver : public SessionObserver {
 public:
  void on_phase(const std::string&) override {}
  void on_trial(const SessionResult&, const Budget&) override {
    if (++trials_ == stop_after_) stop_ = true;
  }

  std::atomic<bool> stop_{false};
  int stop_after_ = -1;
  int trials_ = 0;
};

}  // namespace greta::test
