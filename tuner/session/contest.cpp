#include "tuner/session/contest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tuner/measure/statistics.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t fewest_turns = 8;
constexpr std::size_t turns_for_an_interval = 3;
constexpr double target = 0.005;  // relative half-width of the intervals
constexpr double confidence = 0.95;
// A turn is the median of several launches, because the first one finds caches and clocks as the
// other device's turn left them. This is negligible for long kernels.
constexpr int launches_of_a_turn = 3;
constexpr double long_us = 100'000;

class Contest {
 public:
  Contest(const std::vector<Entrant>& entrants, const SessionOptions& options)
      : entrants_(entrants), options_(options), random_(options.seed), us_(entrants.size()) {}

  ContestResult hold(double seconds, const std::atomic<bool>& stop) {
    const Stopwatch watch;
    while (!stop && turns() < most_turns()) {
      if (turns() >= turns_for_an_interval && watch.seconds() >= seconds) break;
      if (turns() >= fewest_turns && narrow()) break;
      if (!take_turn()) break;
    }
    return turns() >= turns_for_an_interval ? judge_turns() : judge_sessions();
  }

 private:
  std::size_t turns() const { return us_.front().size(); }
  std::size_t most_turns() const { return static_cast<std::size_t>(options_.rounds); }
  bool take_turn();
  bool narrow() const;
  ContestResult judge_turns() const;
  ContestResult judge_sessions() const;
  std::size_t fastest() const;
  Interval ratio(std::size_t slower, std::size_t faster) const;

  const std::vector<Entrant>& entrants_;
  const SessionOptions& options_;
  std::mt19937_64 random_;
  std::vector<std::vector<double>> us_;  // [entrant][turn]
  std::size_t missed_ = 0;               // number of turns lost to drift
  std::string failure_;
};

// Takes one turn of each entrant. Returns false if it is pointless to continue.
bool Contest::take_turn() {
  std::vector<std::size_t> order(entrants_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random_);
  std::vector<double> turn(entrants_.size());
  for (const std::size_t i : order) {
    const auto& [evaluator, session] = entrants_[i];
    const double usual_us = session.winner->measurement.median_us;
    TrialLimits limits;
    limits.cold = options_.cold;
    limits.run_s = std::max(60.0, 20e-6 * usual_us);
    const int wanted = usual_us < long_us ? launches_of_a_turn : 1;
    const Rounds rounds = evaluator.time_rounds(session.problem, {session.winner->config}, wanted,
                                                limits.run_s, random_(), limits);
    if (rounds.failure) {
      failure_ = fmt::format("{}: {}", session.device.id(), rounds.failure->message);
      return false;
    }
    if (rounds.us.front().empty()) return ++missed_ < most_turns();
    turn[i] = median(rounds.us.front());
  }
  for (std::size_t i = 0; i < turn.size(); ++i) us_[i].push_back(turn[i]);
  return true;
}

std::size_t Contest::fastest() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < us_.size(); ++i) {
    if (median(us_[i]) < median(us_[best])) best = i;
  }
  return best;
}

// Any pair could have been selected for comparison, so each interval is corrected for all pairs.
Interval Contest::ratio(std::size_t slower, std::size_t faster) const {
  const auto pairs = static_cast<double>(us_.size() * (us_.size() - 1) / 2);
  return ratio_interval(us_[slower], us_[faster], 1 - (1 - confidence) / pairs);
}

bool Contest::narrow() const {
  const std::size_t best = fastest();
  for (std::size_t i = 0; i < us_.size(); ++i) {
    const Interval interval = ratio(i, best);
    if (interval.high - interval.low > 2 * target * interval.estimate) return false;
  }
  return true;
}

ContestResult Contest::judge_turns() const {
  ContestResult result;
  result.fastest = fastest();
  for (std::size_t i = 0; i < us_.size(); ++i) {
    if (i == result.fastest) continue;
    const Interval interval = ratio(i, result.fastest);
    result.others.push_back(
        {i,
         {entrants_[result.fastest].session.id, entrants_[i].session.id, interval.estimate,
          interval.low, interval.high, confidence, us_[result.fastest], us_[i]}});
  }
  if (!failure_.empty()) result.notes.push_back("the alternating runs were cut short: " + failure_);
  return result;
}

ContestResult Contest::judge_sessions() const {
  const auto measured = [&](std::size_t i) -> const Measurement& {
    return entrants_[i].session.winner->measurement;
  };
  ContestResult result;
  for (std::size_t i = 1; i < entrants_.size(); ++i) {
    if (measured(i).median_us < measured(result.fastest).median_us) result.fastest = i;
  }
  for (std::size_t i = 0; i < entrants_.size(); ++i) {
    if (i == result.fastest) continue;
    result.others.push_back(
        {i, compare_certified(entrants_[result.fastest].session.id, measured(result.fastest),
                              entrants_[i].session.id, measured(i))});
  }
  result.notes.push_back(
      fmt::format("no alternating runs, so the sessions' own intervals decide: {}",
                  !failure_.empty() ? failure_
                  : missed_ > 0     ? "the devices' speed drifted"
                                    : "stopped"));
  return result;
}

}  // namespace

bool ContestResult::sure() const {
  return std::all_of(others.begin(), others.end(),
                     [](const Other& other) { return other.comparison.sure(); });
}

ContestResult hold_contest(const std::vector<Entrant>& entrants, const SessionOptions& options,
                           double seconds, const std::atomic<bool>& stop) {
  return Contest(entrants, options).hold(seconds, stop);
}

}  // namespace greta::tuner
