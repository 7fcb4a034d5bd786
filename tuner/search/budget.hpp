#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// When a search stops: after a time ("60s", "10m", "1h"), a number of trials ("500"), or a
/// percentage of the search space ("5%").
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Kind { seconds, trials, percent };

  /// Parses "60s", "1.5m", "2h", "500" or "5%". For zero, negative or unreadable text it fails with
  /// one line that states the allowed values.
  static Result<Budget> parse(std::string_view text);
  /// Returns a time budget. Throws Error for a value that parse() would reject.
  static Budget seconds(double seconds);
  /// Returns a budget of this number of trials, at least 1.
  static Budget trials_of(std::uint64_t trials);

  /// Returns this share (0…1) of the budget, at least one trial. A percentage of the space is
  /// returned unchanged, because every device gets the same percentage.
  Budget part(double share) const;

  Kind kind() const { return kind_; }
  double amount() const { return amount_; }
  /// Returns the text that the budget was parsed from.
  const std::string& text() const { return text_; }

  /// Starts the clock and converts a percentage of `space_count` configurations to trials.
  void start(std::uint64_t space_count, Clock::time_point now = Clock::now());
  /// Counts seconds that were spent before the clock started, in an earlier part of the session.
  void add_spent(double seconds);
  void count_trial() { ++trials_; }
  bool spent(Clock::time_point now = Clock::now()) const;
  /// Returns the used share, 0…1.
  double used(Clock::time_point now = Clock::now()) const;
  double elapsed_s(Clock::time_point now = Clock::now()) const;
  /// Returns the remaining seconds; infinity unless it is a time budget.
  double remaining_s(Clock::time_point now = Clock::now()) const;
  /// Returns the remaining number of trials; the largest integer for a time budget.
  std::uint64_t remaining_trials() const;
  /// Returns the number of trials of the whole budget; 0 for a time budget.
  std::uint64_t trial_limit() const { return trial_limit_; }
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
