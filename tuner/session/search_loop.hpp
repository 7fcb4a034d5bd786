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
  void ask(Strategy& strategy, const Space& space, std::uint64_t most);
  void tell(Strategy& strategy, const Space& space, Evaluated evaluated);

  SessionWork& work_;
  bool warned_ = false;
};

}  // namespace greta::tuner
