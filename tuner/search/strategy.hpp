#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "db/trial.hpp"
#include "kernels/model/space.hpp"

namespace greta::tuner {

/// Chooses the configuration to try next. It never sees a device. ask() may be called several times
/// before results are told, so that candidates can be compiled ahead.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Returns the next configuration, and never the same one twice. Returns nothing if there is none
  /// until more results are told; if all results have been told, the search is finished.
  virtual std::optional<Choice> ask() = 0;
  /// Reports the trial of a configuration that ask() returned.
  virtual void tell(const Choice& choice, const Trial& trial) = 0;
};

/// The input of a strategy.
struct SearchProblem {
  const Space* space = nullptr;
  std::vector<Choice> seeds;  ///< valid configurations to try first: the default, known winners
  std::uint64_t seed = 0;     ///< seed of the strategy's random numbers
};

struct StrategyEntry {
  std::string_view name;     ///< "random"
  std::string_view summary;  ///< one line for --help
  std::unique_ptr<Strategy> (*create)(const SearchProblem&);
};

/// Returns the explicit list of all strategies.
const std::vector<StrategyEntry>& strategies();
const StrategyEntry* find_strategy(std::string_view name);

}  // namespace greta::tuner
