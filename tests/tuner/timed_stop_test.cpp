// Protects: what tunes a model's problems is stopped when their time is over, or by the user.
#include "tuner/model/timed_stop.hpp"

#include <gtest/gtest.h>

namespace greta::tuner::model {
namespace {

using namespace std::chrono_literals;

bool is_set_within(const std::atomic<bool>& token, std::chrono::milliseconds time) {
  const auto end = TimedStop::Clock::now() + time;
  while (!token && TimedStop::Clock::now() < end) std::this_thread::sleep_for(1ms);
  return token;
}

TEST(TimedStop, IsSetWhenTheTimeHasCome) {
  const std::atomic<bool> user = false;
  const auto begin = TimedStop::Clock::now();
  const TimedStop stop(user, begin + 100ms);
  EXPECT_FALSE(stop.token());
  EXPECT_TRUE(is_set_within(stop.token(), 10s));
  EXPECT_GE(TimedStop::Clock::now(), begin + 100ms);
  EXPECT_FALSE(user);
}

TEST(TimedStop, IsSetByTheUserAndEndsAtOnce) {
  std::atomic<bool> user = false;
  {
    const TimedStop stop(user, TimedStop::Clock::now() + 1h);
    EXPECT_FALSE(is_set_within(stop.token(), 50ms));
    user = true;
    EXPECT_TRUE(is_set_within(stop.token(), 10s));
  }
  user = false;
  const auto begin = TimedStop::Clock::now();
  { const TimedStop stop(user, begin + 1h); }
  EXPECT_LT(TimedStop::Clock::now() - begin, 10s);
}

}  // namespace
}  // namespace greta::tuner::model
