#include "tuner/evaluate/round_timer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tuner/measure/clocks.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr double drift_limit_gpu = 0.05;
constexpr double drift_limit_cpu = 0.25;  // a CPU device shares its cores
constexpr double submission_us = 50'000;  // device time of one submission

}  // namespace

void RoundTimer::set(const std::vector<Config>& configs, std::vector<PreparedPlan> candidates) {
  configs_ = configs;
  candidates_ = std::move(candidates);
  batches_.clear();
  reference_us_.clear();
}

// Takes the rounds of one submission. The launches of a batch are consecutive.
Result<std::vector<RoundTimer::Round>> RoundTimer::take(int count, LaunchTimer& timer,
                                                        std::mt19937_64& random,
                                                        const TrialLimits& limits) const {
  const std::size_t size = candidates_.size();
  std::vector<LaunchTimer::Record> kernels;
  for (const auto& candidate : candidates_) {
    kernels.emplace_back([&candidate](Stream& stream) { return candidate.record(stream); });
  }
  kernels.emplace_back([&](Stream& stream) {
    return timer.reference_kernel()->record(stream, ReferenceKernel::steady);
  });
  std::vector<const LaunchTimer::Record*> records;
  std::vector<std::size_t> kernel_of;  // candidate of each record; the reference kernel is last
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int round = 0; round < count; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      kernel_of.insert(kernel_of.end(), batches_.empty() ? 1 : batches_[i], i);
    }
    kernel_of.push_back(size);
  }
  for (const std::size_t i : kernel_of) records.push_back(&kernels[i]);

  const double longest_s = limits.run_s * static_cast<double>(records.size()) + 10;
  const auto taken = timer.take_each(records, deadline_of(longest_s));
  if (!taken) return taken.failure();
  std::vector<Round> rounds(static_cast<std::size_t>(count), Round(size + 1));
  auto round = rounds.begin();
  for (std::size_t record = 0; record < taken->size(); ++record) {
    const std::size_t i = kernel_of[record];
    const int batch = i == size || batches_.empty() ? 1 : batches_[i];
    (*round)[i] += (*taken)[record] / batch;
    if (i == size) ++round;
  }
  return rounds;
}

// Sets the batch of each candidate from one round. Returns whether that round must be repeated
// because some kernel is too short for the resolution of the timestamps.
bool RoundTimer::learn_batches(const Round& round) {
  batches_.clear();
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    batches_.push_back(batch_for(round[i], info_.timestamp_period_ns));
  }
  return std::any_of(batches_.begin(), batches_.end(), [](int batch) { return batch > 1; });
}

bool RoundTimer::drifted(double reference_us) {
  reference_us_.push_back(reference_us);
  const double usual = median(reference_us_);
  const double limit = info_.is_cpu() ? drift_limit_cpu : drift_limit_gpu;
  return std::abs(reference_us - usual) > limit * usual;
}

double RoundTimer::device_us(const Round& round) const {
  double us = round.back();
  for (std::size_t i = 0; i < batches_.size(); ++i) us += round[i] * batches_[i];
  return us;
}

Rounds RoundTimer::run(LaunchTimer& timer, int rounds, double seconds, std::uint64_t seed,
                       const TrialLimits& limits) {
  const Stopwatch watch;
  std::mt19937_64 random(seed);
  Rounds result;
  result.us.resize(candidates_.size());
  result.batch.assign(candidates_.size(), 1);
  if (auto awake = timer.reach_pace(); !awake) {
    result.failure = awake.failure();
    return result;
  }
  double round_us = submission_us;  // unknown: the first submission is a single round
  for (int done = 0; done < rounds && (done == 0 || watch.seconds() < seconds);) {
    const int count =
        static_cast<int>(std::clamp(submission_us / round_us, 1.0, double(rounds - done)));
    const auto taken = take(count, timer, random, limits);
    if (!taken) {
      result.failure = taken.failure();
      return result;
    }
    if (batches_.empty() && learn_batches(taken->front())) continue;
    done += count;
    for (const auto& round : *taken) {
      round_us = device_us(round);
      if (drifted(round.back())) {
        ++result.dropped;
        continue;
      }
      for (std::size_t i = 0; i < candidates_.size(); ++i) result.us[i].push_back(round[i]);
    }
  }
  result.batch = batches_;
  result.flush_bytes = timer.flush_bytes();
  const CardConditions conditions = read_conditions(info_.card.pci_address);
  result.clocks = conditions.clocks;
  result.card_state = conditions.state;
  return result;
}

}  // namespace greta::tuner
