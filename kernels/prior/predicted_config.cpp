#include "kernels/prior/predicted_config.hpp"

#include <algorithm>
#include <limits>

#include "kernels/prior/prior.hpp"

namespace greta::kernels {
namespace {

constexpr int most_changes = 3;
constexpr double least_gain = 0.98;  ///< predicted time over that without the change

struct Predicted {
  Config config;
  double cost = std::numeric_limits<double>::infinity();
};

/// Predicts valid configurations.
class Predictor {
 public:
  Predictor(const Operation& operation, const Problem& problem, const DeviceInfo& device)
      : operation_(operation), prior_(operation, problem, device) {}

  Predicted best_default() const {
    Predicted best;
    for (const Variant& variant : operation_.variants) {
      for (Config& config :
           variant.defaults(prior_.instance().shape(), prior_.instance().device())) {
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

}  // namespace

std::optional<Config> predicted_config(const Operation& operation, const Problem& problem,
                                       const DeviceInfo& device) {
  if (operation.untuned != Operation::Untuned::best_predicted || device.is_cpu()) {
    return std::nullopt;
  }
  const Predictor predictor(operation, problem, device);
  Predicted best = predictor.best_default();
  for (int change = 0; change < most_changes && best.cost < std::numeric_limits<double>::infinity();
       ++change) {
    Predicted next = predictor.changed(best);
    if (next.cost >= best.cost) break;
    best = std::move(next);
  }
  if (best.config.variant.empty()) return std::nullopt;
  return best.config;
}

}  // namespace greta::kernels
