#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "db/trial.hpp"
#include "kernels/model/space.hpp"

namespace greta::tuner {

/// Decides which configuration to try next. It never sees a device. ask() may be called several
/// times before the answers are told, so that candidates can be compiled ahead.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// The next configuration, never one it has given before; nothing when there is none to give:
  /// for good when every asked one has been told, else until more are told.
  virtual std::optional<Choice> ask() = 0;
  /// What became of a configuration that was asked for.
  virtual void tell(const Choice& choice, const Trial& trial) = 0;
};

/// What a strategy starts from.
struct SearchProblem {
  const Space* space = nullptr;
  std::vector<Choice> seeds;  ///< valid configurations to try first: the default, known winners
  std::uint64_t seed = 0;     ///< of its random choices
};

struct StrategyEntry {
  std::string_view name;     ///< "random"
  std::string_view summary;  ///< one line for --help
  std::unique_ptr<Strategy> (*create)(const SearchProblem&);
};

/// Every strategy: the explicit list, one line each.
const std::vector<StrategyEntry>& strategies();
const StrategyEntry* find_strategy(std::string_view name);

}  // namespace greta::tuner
