#include "tuner/session/finals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/device/text/hash.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/sampler.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t most_finalists = 4;
constexpr std::size_t most_known = 2;     // of them: winners of earlier sessions
constexpr double finalist_margin = 1.10;  // the best medians of a search are biased low
constexpr int fewest_rounds = 8;
constexpr int most_rounds = 60;
constexpr int most_rounds_to_prove = 240;  // while an interval is wider than the gain that it shows
constexpr double target_half_width = 0.005;  // relative half-width of the winner's interval
constexpr double call_s = 2;  // seconds of rounds in one call, so that a stop takes effect soon
constexpr double least_time_s = 5;         // minimum for the finals, whatever the search left
constexpr double least_provisional_s = 2;  // the same, if the caller times winners again
constexpr int most_unexplained_failures = 3;
// The placement of operands changes with the process and affects launches of a few µs. A winner
// shorter than this must also be faster than the default in five further processes. A candidate
// that is slower in half of all processes passes with probability 1/32.
constexpr double short_us = 200;
constexpr int further_processes = 5;
constexpr int rounds_elsewhere = 8;
constexpr std::size_t fewest_elsewhere = 4;  // minimum number of rounds without drift
// Time limit of the finals in a session without a time budget: this share of the search time,
// clamped to [least_time_s, most_time_s].
constexpr double share_of_search = 0.3;
constexpr double most_time_s = 60;
constexpr int repeats_of_winners = 20;  // runs whose bits are compared, to find races

bool contains(const std::vector<Config>& configs, const Config& config) {
  return std::find(configs.begin(), configs.end(), config) != configs.end();
}

}  // namespace

double Finals::time_left_s() const {
  if (budget_.kind() == Budget::Kind::seconds) return budget_.remaining_s();
  const double allowed_s = std::clamp(share_of_search * search_s_, least_time_s, most_time_s);
  return std::max(0.0, search_s_ + allowed_s - budget_.elapsed_s());
}

TrialLimits Finals::limits(double best_us) const {
  TrialLimits limits;
  limits.cold = options_.cold;
  limits.run_s = std::max(60.0, 20e-6 * best_us);
  limits.measure_s = 0.1;  // only orders the finalists; the rounds decide
  limits.best_us = best_us;
  return limits;
}

// Returns the default first, then the fastest candidates of the search.
std::vector<Config> Finals::shortlist() const {
  const std::string key =
      result_.stand_in ? result_.stand_in->problem.key() : result_.problem.key();
  std::vector<const Trial*> ranked;
  for (const auto& trial : result_.trials) {
    if (trial.ok() && trial.problem_key == key && !trial.measurement.raced) {
      ranked.push_back(&trial);
    }
  }
  std::sort(ranked.begin(), ranked.end(), [](const Trial* a, const Trial* b) {
    return a->measurement.median_us < b->measurement.median_us;
  });
  std::vector<Config> configs{result_.default_config};
  // The latest winner of earlier sessions, and of the others those that were faster in the search.
  std::vector<Config> known = result_.known_winners;
  const auto us_of = [&](const Config& config) {
    const Trial* const trial = find_trial(result_.trials, config, key);
    return trial != nullptr && trial->ok() ? trial->measurement.median_us
                                           : std::numeric_limits<double>::infinity();
  };
  if (known.size() > 1) {
    std::stable_sort(known.begin() + 1, known.end(),
                     [&](const Config& a, const Config& b) { return us_of(a) < us_of(b); });
  }
  for (const Config& config : known) {
    if (configs.size() > most_known) break;
    if (!contains(configs, config)) configs.push_back(config);
  }
  for (const Trial* trial : ranked) {
    const bool close =
        trial->measurement.median_us <= finalist_margin * ranked.front()->measurement.median_us;
    if (!close || configs.size() > most_finalists) break;
    if (!contains(configs, trial->config)) configs.push_back(trial->config);
  }
  return configs;
}

// Verifies the finalists that were not yet verified at full size, which are all of them after a
// search on a stand-in. The default, the known winner and the fastest are required, others while
// time is left.
void Finals::confirm(const RecordTrial& record) {
  const std::string key = result_.problem.key();
  double best_us = 0;
  const std::size_t needed = 2 + std::min(result_.known_winners.size(), most_known);
  for (const auto& config : shortlist()) {
    if (stop_) return;
    if (find_trial(result_.ended_badly, config, key) != nullptr) {
      result_.not_tried.insert(config);
      default_failed_ = default_failed_ || config == result_.default_config;
      continue;
    }
    const Trial* const earlier = find_trial(result_.trials, config, key);
    const bool tried = earlier != nullptr && !was_killed(*earlier);
    bool passed = tried && earlier->ok();
    const double rounds_us = 12 * best_us * static_cast<double>(contenders_.size() + 1);
    if (!tried && contenders_.size() >= needed && time_left_s() < rounds_us * 1e-6) break;
    if (!tried) {
      TrialLimits allowed = limits(best_us);
      allowed.reject_spills = options_.reject_spills && config != result_.default_config;
      Trial trial = evaluator_.evaluate(result_.problem, config, allowed);
      best_us = trial.ok() ? trial.measurement.median_us : best_us;
      passed = trial.ok();
      record(std::move(trial));
    }
    if (passed) {
      contenders_.push_back({.config = config, .is_default = config == result_.default_config});
    } else if (config == result_.default_config) {
      default_failed_ = true;
    }
  }
  comparisons_ = contenders_.size() - std::min<std::size_t>(contenders_.size(), 1);
}

void Finals::drop(std::size_t contender, Departure why) {
  if (contender == 0) default_failed_ = true;
  left_.push_back(std::move(contenders_[contender]));
  left_.back().left = why;
  contenders_.erase(contenders_.begin() + static_cast<std::ptrdiff_t>(contender));
}

void Finals::add_rounds(int count, double seconds_left, const RecordTrial& record) {
  std::vector<Config> configs;
  for (const auto& contender : contenders_) configs.push_back(contender.config);
  const auto done = contenders_.front().us.size();
  const Lap lap(result_.time.measure);
  const auto rounds = evaluator_.time_rounds(result_.problem, configs, count, seconds_left,
                                             Hash().add(options_.seed).add(done).low(), limits(0));
  dropped_rounds_ += rounds.dropped;
  flush_bytes_ = rounds.flush_bytes;
  clocks_ = rounds.clocks;
  card_state_ = rounds.card_state;
  for (std::size_t i = 0; i < rounds.us.size(); ++i) {
    auto& us = contenders_[i].us;
    us.insert(us.end(), rounds.us[i].begin(), rounds.us[i].end());
    contenders_[i].batch = rounds.batch[i];
  }
  if (rounds.failure) find_culprit(*rounds.failure, record);
}

// The rounds run many candidates together. After a failure, each one is verified alone.
void Finals::find_culprit(const Failure& failure, const RecordTrial& record) {
  result_.notes.push_back("the certifying rounds were cut short: " + failure.message);
  const std::size_t before = contenders_.size();
  for (std::size_t i = contenders_.size(); i-- > 0;) {
    Trial trial =
        evaluator_.verify(result_.problem, contenders_[i].config, options_.seed, limits(0));
    if (trial.ok()) continue;
    result_.notes.push_back(fmt::format("{} failed while its time was certified: {}",
                                        trial.config.shown(), trial.message));
    record(std::move(trial));
    drop(i, Departure::failed);
  }
  if (contenders_.size() == before && ++unexplained_failures_ == most_unexplained_failures) {
    while (!contenders_.empty()) drop(contenders_.size() - 1, Departure::failed);
  }
}

// Drops contenders that are significantly slower than the leader. The default stays.
void Finals::drop_hopeless() {
  const auto now = certification();
  for (std::size_t i = contenders_.size(); i-- > 1;) {
    if (i != now.winner && now.ratios[i].low > 1.02) drop(i, Departure::slower);
  }
}

// Stops on precision and not on the sign of the result, because stopping as soon as a contender
// appears significant would inflate the rate of false positives.
void Finals::time_in_rounds(const RecordTrial& record) {
  const Stopwatch watch;
  const double allowed_s =
      std::max(time_left_s(), options_.provisional ? least_provisional_s : least_time_s);
  int rounds_per_call = 1;
  while (!stop_ && !contenders_.empty()) {
    const double spent_s = watch.seconds();
    const auto done = contenders_.front().us.size();
    const auto now = certification();
    const std::size_t most = now.unproved.empty() ? most_rounds : most_rounds_to_prove;
    if (done >= most || (done >= 2 && spent_s >= allowed_s)) break;
    if (done >= fewest_rounds && now.unproved.empty() && sure_enough(now, target_half_width)) break;
    add_rounds(rounds_per_call, std::max(0.0, allowed_s - spent_s), record);
    if (contenders_.empty() || dropped_rounds_ > most_rounds) break;
    const auto taken = std::max<std::size_t>(1, contenders_.front().us.size());
    const double each_s = watch.seconds() / static_cast<double>(taken);
    rounds_per_call = static_cast<int>(std::clamp(call_s / each_s, 1.0, 8.0));
    if (contenders_.front().us.size() >= fewest_rounds) drop_hopeless();
  }
  if (dropped_rounds_ > 0) {
    result_.notes.push_back(fmt::format(
        "{} dropped because the device's speed drifted",
        dropped_rounds_ == 1 ? "1 round was" : fmt::format("{} rounds were", dropped_rounds_)));
  }
}

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

// Checks that a short winner is also faster than the default in further processes.
bool Finals::faster_elsewhere(const Config& config, const Announce& announce) {
  elsewhere_.clear();
  const bool is_short = median(contenders_.front().us) < short_us;
  if (default_failed_ || config == result_.default_config || !is_short || options_.provisional ||
      evaluator_.device().is_cpu()) {
    return true;
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

std::vector<Config> Finals::contenders() const {
  std::vector<Config> configs;
  for (const Finalist& contender : contenders_) configs.push_back(contender.config);
  return configs;
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

void Finals::run(const RecordTrial& record, const Announce& announce) {
  if (best_trial(result_.trials, result_.stand_in ? result_.stand_in->problem.key()
                                                  : result_.problem.key()) == nullptr) {
    return;
  }
  if (result_.stand_in) announce("confirming the finalists at full size");
  confirm(record);
  announce("certifying the winner in interleaved rounds");
  time_in_rounds(record);
  choose(record, announce);
  result_.finalists = contenders_;
  result_.finalists.insert(result_.finalists.end(), left_.begin(), left_.end());
  if (!result_.winner && !stop_) {
    result_.notes.push_back(
        dropped_rounds_ > 0
            ? "nothing was certified: the device's speed drifted in every round"
            : "nothing was certified: no finalist passed at full size and on new inputs");
  }
  if (default_failed_ && result_.winner) {
    result_.notes.push_back("the default configuration failed: the winner has no ratio to it");
  }
}

}  // namespace greta::tuner
