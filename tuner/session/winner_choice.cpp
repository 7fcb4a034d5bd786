#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/device/text/hash.hpp"
#include "tuner/measure/sampler.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/session/finals.hpp"

/// The part of Finals that chooses and checks the winner.
namespace greta::tuner {
namespace {

// The placement of operands changes with the process and affects launches of a few µs. A winner
// shorter than this must also be faster than the default in five further processes. A candidate
// that is slower in half of all processes passes with probability 1/32.
constexpr double short_us = 200;
constexpr int further_processes = 5;
constexpr int rounds_elsewhere = 8;
constexpr std::size_t fewest_elsewhere = 4;  // minimum number of rounds without drift
constexpr int repeats_of_winners = 20;       // runs whose bits are compared, to find races

}  // namespace

// Reports the contenders that would have won if their intervals were narrower.
void Finals::report_unproved(const Certification& proved) {
  for (const std::size_t i : proved.unproved) {
    const Interval& speedup = proved.speedups[i];
    if (proved.winner != 0 && speedup.estimate <= proved.speedup.estimate) continue;
    result_.notes.push_back(fmt::format(
        "{} is {:.2f}× as fast as the default ({:.2f} to {:.2f}): the interval is wider than the "
        "gain, so it is not a winner",
        contenders_[i].config.shown(), speedup.estimate, speedup.low, speedup.high));
  }
}

// Returns the default's time divided by this configuration's, in another process.
Result<double> Finals::ratio_elsewhere(const Config& config, int process) {
  const auto seed = Hash().add(options_.seed).add("elsewhere").add(process).low();
  Failure why;
  for (int attempt = 0; attempt < 2 && !stop_; ++attempt) {
    try {
      evaluator_.renew();
      const auto rounds = evaluator_.time_rounds(result_.problem, {result_.default_config, config},
                                                 rounds_elsewhere, call_s, seed, limits(0));
      if (rounds.us[0].size() >= fewest_elsewhere) {
        return ratio_interval(rounds.us[0], rounds.us[1], 0.95).estimate;
      }
      why = rounds.failure.value_or(
          Failure{Status::unavailable, "the device's speed drifted in most rounds", {}});
    } catch (const Error& error) {
      why = {error.status(), error.what(), {}};
    }
  }
  return why;
}

// Checks that a short winner is also faster than the default in further processes. The first one is
// checked beyond the budget, too; what comes after it only within the budget, as a process whose
// inputs are large needs seconds.
bool Finals::faster_elsewhere(const Config& config, const Announce& announce) {
  elsewhere_.clear();
  const bool is_short = median(contenders_.front().us) < short_us;
  if (default_failed_ || config == result_.default_config || !is_short || options_.provisional ||
      evaluator_.device().is_cpu()) {
    return true;
  }
  if (++tried_elsewhere_ > 1 && time_left_s() <= 0) {
    result_.notes.push_back(
        fmt::format("the time is over: {} was not compared with the default in further processes, "
                    "and is not a winner",
                    config.shown()));
    return false;
  }
  announce("timing the winner in further processes");
  const Lap lap(result_.time.measure);
  for (int i = 0; i < further_processes && !stop_; ++i) {
    const auto ratio = ratio_elsewhere(config, i);
    if (ratio) elsewhere_.push_back(*ratio);
    if (ratio && *ratio > 1) continue;
    const std::string why = ratio ? fmt::format("takes {:.3g} of its time in another", 1 / *ratio)
                                  : "could not be timed in another: " + ratio.failure().message;
    result_.notes.push_back(
        fmt::format("{} is faster than the default in one process, and {}: it is not a winner",
                    config.shown(), why));
    return false;
  }
  return !stop_;
}

bool Finals::check_again(const Config& config, const RecordTrial& record, Verdict& verdict) {
  TrialLimits allowed = limits(0);
  allowed.repeats = repeats_of_winners;
  Trial trial = evaluator_.verify(result_.problem, config,
                                  Hash().add(options_.seed).add("final check").low(), allowed);
  verdict = trial.verdict;
  const bool ok = trial.ok();
  if (!ok) {
    result_.notes.push_back(
        fmt::format("{} failed the last check, on new inputs: {}", config.shown(), trial.message));
    record(std::move(trial));
  } else {
    result_.time.compile += trial.compile_s;
    result_.time.verify += trial.verify_s;
  }
  return ok;
}

Winner Finals::describe(const Certification& certification) const {
  const Finalist& chosen = contenders_[certification.winner];
  Winner winner;
  winner.config = chosen.config;
  winner.is_default = chosen.config == result_.default_config;
  winner.card = evaluator_.device().card.uuid;
  Measurement& measurement = winner.measurement;
  measurement.samples_us = chosen.us;
  summarise(measurement);
  measurement.cold = winner.cold = options_.cold;
  measurement.batch = chosen.batch;
  measurement.dropped = dropped_rounds_;
  measurement.flush_bytes = flush_bytes_;
  measurement.clocks = clocks_;
  measurement.card_state = card_state_;
  if (!default_failed_) {
    winner.default_samples_us = contenders_.front().us;
    winner.default_us = median(winner.default_samples_us);
    winner.speedup = certification.speedup.estimate;
    winner.speedup_low = certification.speedup.low;
    winner.speedup_high = certification.speedup.high;
  }
  winner.confidence = certification.confidence;
  winner.rounds = static_cast<int>(chosen.us.size());
  winner.kernels = find_trial(result_.trials, winner.config, result_.problem.key())->kernels;
  for (const std::size_t i : certification.ties) {
    winner.ties.push_back({contenders_[i].config, certification.ratios[i].estimate});
  }
  return winner;
}

// Returns the contender that an earlier session certified, if this one has no reason to replace it:
// it is not significantly slower than what would win now, which is the default, or not faster. One
// that was never compared with the default has to be faster than it.
std::optional<std::size_t> Finals::unbeaten_earlier(const Certification& proved) const {
  if (default_failed_ || result_.known_winners.empty()) return std::nullopt;
  const Config& earlier = result_.known_winners.front();
  if (earlier == result_.default_config) return std::nullopt;
  for (std::size_t i = 1; i < contenders_.size(); ++i) {
    if (contenders_[i].config != earlier || i == proved.winner) continue;
    const Interval& ratio = proved.ratios[i];
    if (!result_.earlier_has_ratio && ratio.estimate >= 1) return std::nullopt;
    if (ratio.low > 1 || (proved.winner != 0 && ratio.estimate >= 1)) return std::nullopt;
    return i;
  }
  return std::nullopt;
}

// Returns whether the winner of an earlier session stays. A contender that fails is dropped.
bool Finals::keep_earlier(const Certification& proved, const RecordTrial& record) {
  const auto earlier = unbeaten_earlier(proved);
  if (!earlier) return false;
  Certification as_winner = proved;
  as_winner.winner = *earlier;
  as_winner.speedup = proved.speedups[*earlier];
  as_winner.ties.clear();
  Winner winner = describe(as_winner);
  if (!check_again(winner.config, record, winner.verdict)) {
    drop(*earlier, Departure::failed);
    return false;
  }
  result_.notes.push_back(fmt::format(
      "the winner of an earlier run stays: here it is {:.3f}× as fast as the default ({:.3f} to "
      "{:.3f}), and no candidate is proved to be faster than it",
      winner.speedup, winner.speedup_low, winner.speedup_high));
  result_.winner = std::move(winner);
  result_.keeps_earlier = true;
  return true;
}

// Chooses the winner: the first in the order of certification that passes the last checks.
void Finals::choose(const RecordTrial& record, const Announce& announce) {
  while (!stop_ && !contenders_.empty() && !contenders_.front().us.empty()) {
    const auto proved = certification();
    const std::size_t before = contenders_.size();
    if (keep_earlier(proved, record)) return;
    if (contenders_.size() < before) continue;  // it failed its last check
    Winner winner = describe(proved);
    const bool faster = faster_elsewhere(winner.config, announce);
    if (!faster || !check_again(winner.config, record, winner.verdict)) {
      drop(proved.winner, faster ? Departure::failed : Departure::slower_elsewhere);
      continue;
    }
    for (const double ratio : elsewhere_) {
      winner.speedup_low = std::min(winner.speedup_low, ratio);
      winner.speedup_high = std::max(winner.speedup_high, ratio);
    }
    elsewhere_.push_back(winner.speedup);
    winner.speedup = median(elsewhere_);
    result_.winner = std::move(winner);
    report_unproved(proved);
    return;
  }
}

}  // namespace greta::tuner
