// Protects: what tunes a model's problems is stopped when their time is over, or by the user.
#include "tuner/model/timed_stop.hpp"

#include <gtest/gtest.h>

namespace greta::tuner::model {
namespace {

using namespace std::chrono_literals;

/// Hangs if it is never set.
void wait_for(const std::atomic<bool>& token) {
  while (!token) std::this_thread::sleep_for(1ms);
}

TEST(TimedStop, IsSetWhenTheTimeHasCome) {
  const std::atomic<bool> user = false;
  const auto begin = TimedStop::Clock::now();
  const TimedStop stop(user, begin + 100ms);
  wait_for(stop.token());
  EXPECT_GE(TimedStop::Clock::now(), begin + 100ms);
  EXPECT_FALSE(user);
}

TEST(TimedStop, IsSetByTheUserAndEndsAtOnce) {
  std::atomic<bool> user = false;
  {
    const TimedStop stop(user, TimedStop::Clock::now() + 1h);
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(stop.token());
    user = true;
    wait_for(stop.token());
  }
  user = false;
  { const TimedStop stop(user, TimedStop::Clock::now() + 24h); }
}

}  // namespace
}  // namespace greta::tuner::model
