#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/trial.hpp"
#include "kernels/model/space.hpp"
#include "runtime/device/result.hpp"

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

/// Values of a strategy's options, by name.
using StrategyOptions = std::map<std::string, double, std::less<>>;

/// The input of a strategy.
struct SearchProblem {
  const Space* space = nullptr;
  std::vector<Choice> seeds;  ///< valid configurations to try first: the default, known winners
  std::uint64_t seed = 0;     ///< seed of the strategy's random numbers
  /// The number of trials that the search will have; 0: unknown. Not an estimate from times, by
  /// which a run that goes on after an interruption would choose others than before.
  std::uint64_t budget = 0;
  /// Predicts the time of a valid configuration without running it, in any unit; infinity: there is
  /// no prediction for its variant.
  using Prior = std::function<double(const Choice&)>;
  Prior prior = nullptr;         ///< empty: there are no predictions
  StrategyOptions options = {};  ///< all of the strategy's, complete (create_strategy())
};

/// An option of a strategy: `--strategy NAME:option=value`.
struct StrategyOption {
  std::string_view name;
  double standard = 0;  ///< value if it is not given
  double least = 0;
  double most = 0;
  std::string_view help;  ///< one line
  bool whole = false;     ///< only whole numbers
};

struct StrategyEntry {
  std::string_view name;     ///< "random"
  std::string_view summary;  ///< one line for --help
  std::unique_ptr<Strategy> (*create)(const SearchProblem&);
  std::vector<StrategyOption> options{};
  /// Returns what is wrong with values that are each in their range, or an empty string.
  std::string (*check)(const StrategyOptions&) = nullptr;
};

/// Returns the explicit list of all strategies.
const std::vector<StrategyEntry>& strategies();
const StrategyEntry* find_strategy(std::string_view name);

/// A strategy as users name it, with its options.
struct StrategyChoice {
  const StrategyEntry* entry = nullptr;
  StrategyOptions options;  ///< complete: those not given have their standard values
};

/// Parses "NAME" or "NAME:option=value,option=value". A failure is on the field "strategy".
Result<StrategyChoice> parse_strategy(std::string_view text);

/// Creates a strategy for a text that parse_strategy() accepts; throws Error for another.
/// problem.options is replaced.
std::unique_ptr<Strategy> create_strategy(std::string_view text, SearchProblem problem);

}  // namespace greta::tuner
