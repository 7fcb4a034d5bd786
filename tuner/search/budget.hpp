#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// When to stop: a time ("60s", "10m", "1h"), a number of trials ("500"), or a share of the space
/// ("5%").
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Kind { seconds, trials, percent };

  /// Reads "60s", "1.5m", "2h", "500" or "5%". Zero, negative and unreadable ones fail with a line
  /// that says what is allowed.
  static Result<Budget> parse(std::string_view text);
  /// A time. Throws Error for what parse() would refuse.
  static Budget seconds(double seconds);
  /// A number of trials, at least 1.
  static Budget trials_of(std::uint64_t trials);

  /// This share (0…1) of it, at least one trial; a share of the space is one of any device's.
  Budget part(double share) const;

  Kind kind() const { return kind_; }
  double amount() const { return amount_; }
  /// As it was given.
  const std::string& text() const { return text_; }

  /// Starts the clock; `space_count` turns a percentage into trials.
  void start(std::uint64_t space_count, Clock::time_point now = Clock::now());
  void count_trial() { ++trials_; }
  bool spent(Clock::time_point now = Clock::now()) const;
  /// 0…1
  double used(Clock::time_point now = Clock::now()) const;
  double elapsed_s(Clock::time_point now = Clock::now()) const;
  /// Seconds left; infinity for a budget of trials.
  double remaining_s(Clock::time_point now = Clock::now()) const;
  /// Trials left; the largest number for a budget of time.
  std::uint64_t remaining_trials() const;
  std::uint64_t trials() const { return trials_; }

 private:
  Kind kind_ = Kind::seconds;
  double amount_ = 0;
  std::string text_;
  Clock::time_point start_{};
  std::uint64_t trial_limit_ = 0;
  std::uint64_t trials_ = 0;
};

}  // namespace greta::tuner
