#include "tuner/measure/certify.hpp"

#include <algorithm>

namespace greta::tuner {
namespace {

constexpr double tie_margin = 1.01;

bool is_faster(const Interval& speedup) {
  return speedup.low > 1;
}

bool is_proved(const Interval& speedup) {
  constexpr double large_gain = 1.05;
  const bool narrow = speedup.high - speedup.low <= speedup.estimate - 1;
  return is_faster(speedup) && (narrow || speedup.low >= large_gain);
}

// Returns the position of the fastest contender that is proved to be faster than the default, or 0.
std::size_t fastest_proved(const std::vector<Interval>& speedups) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < speedups.size(); ++i) {
    if (is_proved(speedups[i]) && (best == 0 || speedups[i].estimate > speedups[best].estimate))
      best = i;
  }
  return best;
}

std::vector<Interval> ratios_to(const std::vector<Finalist>& contenders, std::size_t base,
                                double confidence) {
  std::vector<Interval> ratios;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    ratios.push_back(i == base ? Interval{1, 1, 1}
                               : ratio_interval(contenders[i].us, contenders[base].us, confidence));
  }
  return ratios;
}

// Bonferroni's correction.
double confidence_of_each(double joint, std::size_t comparisons) {
  return 1 - (1 - joint) / static_cast<double>(comparisons);
}

}  // namespace

Certification certify(const std::vector<Finalist>& contenders, std::size_t comparisons,
                      double confidence) {
  Certification result;
  result.confidence = confidence;
  if (contenders.size() < 2) {
    result.ratios.assign(contenders.size(), Interval{1, 1, 1});
    return result;
  }
  const double each = confidence_of_each(confidence, std::max(comparisons, contenders.size() - 1));
  std::vector<Interval> speedups{{1, 1, 1}};
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    speedups.push_back(ratio_interval(contenders[0].us, contenders[i].us, each));
  }
  const std::size_t fastest = fastest_proved(speedups);
  auto ratios = ratios_to(contenders, fastest, each);

  result.winner = fastest;
  for (std::size_t i = 1; fastest != 0 && i < contenders.size(); ++i) {
    const bool tied = ratios[i].contains(1) && ratios[i].estimate < tie_margin;
    const bool first = contenders[i].config < contenders[result.winner].config;
    if (tied && first && is_proved(speedups[i])) result.winner = i;
  }
  if (result.winner != fastest) ratios = ratios_to(contenders, result.winner, each);
  result.speedup = speedups[result.winner];
  for (std::size_t i = 1; i < speedups.size(); ++i) {
    if (is_faster(speedups[i]) && !is_proved(speedups[i])) result.unproved.push_back(i);
  }
  result.speedups = std::move(speedups);
  result.ratios = std::move(ratios);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (i != result.winner && result.ratios[i].contains(1)) result.ties.push_back(i);
  }
  return result;
}

std::vector<Standing> standings(const std::vector<Finalist>& finalists, double confidence) {
  const auto control = std::find_if(finalists.begin(), finalists.end(),
                                    [](const auto& one) { return one.is_default; });
  const double each = confidence_of_each(confidence, finalists.size() - 1);
  std::vector<Standing> all;
  for (const Finalist& one : finalists) {
    Standing standing{median_interval(one.us, confidence), std::nullopt};
    const std::size_t common =
        control == finalists.end() ? 0 : std::min(one.us.size(), control->us.size());
    const auto end = static_cast<std::ptrdiff_t>(common);
    if (one.is_default) {
      standing.speedup = {1, 1, 1};
    } else if (common >= 2) {
      standing.speedup = ratio_interval({control->us.begin(), control->us.begin() + end},
                                        {one.us.begin(), one.us.begin() + end}, each);
    }
    all.push_back(standing);
  }
  return all;
}

bool sure_enough(const Certification& certification, double target) {
  for (std::size_t i = 0; i < certification.ratios.size(); ++i) {
    const Interval& ratio = certification.ratios[i];
    const bool narrow = ratio.high - ratio.low <= 2 * target * ratio.estimate;
    const bool surely_slower = ratio.low > 1 && i != 0;
    if (!narrow && !surely_slower) return false;
  }
  return true;
}

}  // namespace greta::tuner
