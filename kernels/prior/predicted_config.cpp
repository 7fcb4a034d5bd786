#include "kernels/prior/predicted_config.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "kernels/prior/prior.hpp"

namespace greta::kernels {
namespace {

constexpr int most_changes = 3;
constexpr double least_gain = 0.98;  ///< predicted time over that without the change
/// The same of all changes together: smaller gains are within the prediction's error
/// (results/2026-11-27-nvidia-h200-fresh).
constexpr double least_gain_of_all = 0.9;

struct Predicted {
  Config config;
  double cost = std::numeric_limits<double>::infinity();
};

/// Returns the variant's defaults, and then its candidates.
std::vector<Config> known_configs(const Variant& variant, const Instance& instance) {
  std::vector<Config> list = variant.defaults(instance.shape(), instance.device());
  if (!variant.candidates) return list;
  std::ranges::move(variant.candidates(instance.shape(), instance.device()),
                    std::back_inserter(list));
  return list;
}

/// Predicts valid configurations.
class Predictor {
 public:
  Predictor(const Operation& operation, const Problem& problem, const DeviceInfo& device)
      : operation_(operation), prior_(operation, problem, device) {}

  /// Returns whether the operation's default is of a variant whose default stands.
  bool default_stands() const {
    std::string rejected;
    const auto config = prior_.instance().untuned(rejected);
    return config && operation_.variant(config->variant).default_stands;
  }

  /// Returns the fastest of all defaults and candidates.
  Predicted best_known() const {
    Predicted best;
    for (const Variant& variant : operation_.variants) {
      for (Config& config : known_configs(variant, prior_.instance())) {
        take_if_faster(std::move(config), 1, best);
      }
    }
    return best;
  }

  /// Returns the fastest configuration with one other value; `from` if none gains enough.
  Predicted changed(const Predicted& from) const {
    Predicted best = from;
    for (const Alternative& alternative : prior_.instance().alternatives()) {
      if (alternative.variant != from.config.variant) continue;
      for (std::size_t i = 0; i < alternative.parameters.size(); ++i) {
        for (const int value : alternative.parameters[i].values) {
          if (value == from.config.values[i].second) continue;
          Config next = from.config;
          next.values[i].second = value;
          take_if_faster(std::move(next), best.cost == from.cost ? least_gain : 1, best);
        }
      }
    }
    return best;
  }

 private:
  void take_if_faster(Config config, double factor, Predicted& best) const {
    if (prior_.instance().rejects(config)) return;
    const auto cost = prior_.cost(config);
    if (cost && *cost < factor * best.cost) best = {std::move(config), *cost};
  }

  const Operation& operation_;
  StaticPrior prior_;
};

/// The best of some configurations: the one with the least predicted cost, or the first one.
class BestPredicted {
 public:
  explicit BestPredicted(const StaticPrior& prior) : prior_(prior) {}

  void add(Config config) {
    const auto cost = prior_.cost(config);
    if (best_ && !(cost && *cost < least_)) return;
    if (cost) least_ = *cost;
    best_ = std::move(config);
  }
  std::optional<Config> best() && { return std::move(best_); }
  bool empty() const { return !best_; }

 private:
  const StaticPrior& prior_;
  std::optional<Config> best_;
  double least_ = std::numeric_limits<double>::infinity();
};

/// The number of configurations of a space that are predicted: all of a small one, else some at
/// equal distances.
constexpr std::uint64_t most_predicted = 2000;

}  // namespace

std::optional<Config> predicted_of_variant(const Operation& operation, const Alternative& variant,
                                           const Problem& problem, const DeviceInfo& device) {
  const StaticPrior prior(operation, problem, device);
  BestPredicted best(prior);
  for (Config& config : known_configs(operation.variant(variant.variant), prior.instance())) {
    if (!rejects(variant, config)) best.add(std::move(config));
  }
  if (!best.empty()) return std::move(best).best();
  const Space space({variant});
  const std::uint64_t count = space.count(), tried = std::min(count, most_predicted);
  for (std::uint64_t i = 0; i < tried; ++i) {
    // count / tried * i without overflow
    best.add(space.at(count / tried * i + count % tried * i / tried));
  }
  return std::move(best).best();
}

std::optional<Config> predicted_config(const Operation& operation, const Problem& problem,
                                       const DeviceInfo& device) {
  if (operation.untuned != Operation::Untuned::best_predicted || device.is_cpu()) {
    return std::nullopt;
  }
  const Predictor predictor(operation, problem, device);
  if (predictor.default_stands()) return std::nullopt;
  const Predicted standard = predictor.best_known();
  if (standard.config.variant.empty()) return std::nullopt;
  Predicted best = standard;
  for (int change = 0; change < most_changes && best.cost < std::numeric_limits<double>::infinity();
       ++change) {
    Predicted next = predictor.changed(best);
    if (next.cost >= best.cost) break;
    best = std::move(next);
  }
  return best.cost < least_gain_of_all * standard.cost ? best.config : standard.config;
}

}  // namespace greta::kernels
