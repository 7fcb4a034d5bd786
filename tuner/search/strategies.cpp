#include "tuner/search/factories.hpp"

namespace greta::tuner {

const std::vector<StrategyEntry>& strategies() {
  static const std::vector<StrategyEntry> list{
      {"local", "a random design, then the most promising around the best", create_local},
      {"random", "uniform over the whole space", create_random},
      {"exhaustive", "every configuration, in order", create_exhaustive},
  };
  return list;
}

const StrategyEntry* find_strategy(std::string_view name) {
  for (const StrategyEntry& entry : strategies()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace greta::tuner
