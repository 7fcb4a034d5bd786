#pragma once

#include "tuner/search/strategy.hpp"
#include "tuner/session/session_work.hpp"

namespace greta::tuner {

/// The search of a session: asks a strategy, evaluates on all members of the pool, records, and
/// tells.
class SearchLoop {
 public:
  explicit SearchLoop(SessionWork& work) : work_(work) {}

  /// Runs until the budget is spent, the strategy has nothing more, or the session is stopped.
  void run();

 private:
  bool time_for_finals();
  /// Returns the configurations that the strategy tries first: the recorded ones, if the search has
  /// begun before.
  std::vector<Choice> first_of(const Space& space);
  /// Asks the strategy once. Returns the configuration to evaluate; nothing if there is none, or if
  /// its trial is known, which the strategy is then told.
  std::optional<Config> ask_once(Strategy& strategy, const Space& space);
  /// Repeats the recorded part of the search, and queues what was in flight when it ended.
  void replay(Strategy& strategy, const Space& space);
  void ask(Strategy& strategy, const Space& space, std::uint64_t most);
  void tell(Strategy& strategy, const Space& space, Evaluated evaluated);

  SessionWork& work_;
  std::int64_t asks_ = 0;   ///< number of times that the strategy was asked
  bool exhausted_ = false;  ///< the strategy had nothing when it was last asked
  bool warned_ = false;
};

}  // namespace greta::tuner
