#include "tuner/session/finals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/device/text/hash.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t most_finalists = 4;
constexpr std::size_t most_known = 2;     // of them: winners of earlier sessions
constexpr double finalist_margin = 1.10;  // the best medians of a search are biased low
constexpr int fewest_rounds = 8;
constexpr int times_to_prove = 4;        // as many rounds while an interval is wider than its gain
constexpr int most_dropped_rounds = 60;  // whatever the limit of rounds: these measured nothing
constexpr double target_half_width = 0.005;  // relative half-width of the winner's interval
constexpr double least_time_s = 5;           // minimum for the finals, whatever the search left
constexpr double least_provisional_s = 2;    // the same, if the caller times winners again
constexpr int most_unexplained_failures = 3;
// Time limit of the finals in a session without a time budget: this share of the search time,
// clamped to [least_time_s, most_time_s].
constexpr double share_of_search = 0.3;
constexpr double most_time_s = 60;

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
  const auto most_rounds = static_cast<std::size_t>(options_.rounds);
  int rounds_per_call = 1;
  while (!stop_ && !contenders_.empty()) {
    const double spent_s = watch.seconds();
    const auto done = contenders_.front().us.size();
    const auto now = certification();
    const std::size_t most = now.unproved.empty() ? most_rounds : times_to_prove * most_rounds;
    if (done >= most || (done >= 2 && spent_s >= allowed_s)) break;
    if (done >= fewest_rounds && now.unproved.empty() && sure_enough(now, target_half_width)) break;
    const int left = static_cast<int>(most - done);
    add_rounds(std::min(rounds_per_call, left), std::max(0.0, allowed_s - spent_s), record);
    if (contenders_.empty() || dropped_rounds_ > most_dropped_rounds) break;
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

std::vector<Config> Finals::contenders() const {
  std::vector<Config> configs;
  for (const Finalist& contender : contenders_) configs.push_back(contender.config);
  return configs;
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
