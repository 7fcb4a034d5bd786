#include "tuner/page/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

Spread spread_of(const std::vector<double>& values) {
  std::vector<double> sound;
  double logs = 0;
  for (const double value : values) {
    if (!std::isfinite(value) || value <= 0) continue;
    sound.push_back(value);
    logs += std::log(value);
  }
  Spread spread{.count = sound.size()};
  if (sound.empty()) return spread;
  spread.geometric_mean = std::exp(logs / static_cast<double>(sound.size()));
  spread.least = quantile(sound, 0);
  spread.quarter = quantile(sound, 0.25);
  spread.half = quantile(sound, 0.5);
  spread.three_quarters = quantile(sound, 0.75);
  spread.most = quantile(sound, 1);
  return spread;
}

std::vector<Spread> spreads_by_value(const std::vector<double>& times,
                                     const std::vector<std::uint16_t>& places, std::size_t values) {
  std::vector<std::vector<double>> groups(values);
  for (std::size_t i = 0; i < times.size(); ++i)
    if (places[i] < values) groups[places[i]].push_back(times[i]);
  std::vector<Spread> spreads;
  for (const auto& group : groups) spreads.push_back(spread_of(group));
  return spreads;
}

std::vector<std::size_t> pareto(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i]) && std::isfinite(y[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return x[a] != x[b] ? x[a] < x[b] : y[a] < y[b];
  });
  std::vector<std::size_t> front;
  double lowest = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    const bool equal = !front.empty() && x[front.back()] == x[i] && y[front.back()] == y[i];
    if (!(y[i] < lowest) && !equal) continue;
    front.push_back(i);
    lowest = y[i];
  }
  return front;
}

}  // namespace greta::tuner
