#pragma once

#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/space.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// Finds the distinct winners of earlier sessions for the problem and device of `result` that are
/// valid in the space, for all drivers, compilers and templates; the present ones' first. Those of
/// older templates are carried over (Instance::migrate). Adds a note for each one that was changed
/// or can't be carried over.
void find_known_winners(const Operation& operation, const Space& space, bool cold,
                        const TunedDb& db, SessionResult& result);

/// Returns whether the latest of them was certified with this driver, compiler and template.
bool earlier_winner_is_current(const SessionResult& result, bool cold, const Provenance& now,
                               const TunedDb& db);

/// Returns the valid configurations that are tried regardless of the budget: the default, the
/// user's, the winners of earlier sessions, and what look-ups answer.
std::vector<Config> first_seeds(const Space& space, const SessionResult& result,
                                const SessionOptions& options);

/// Returns the valid configurations that a search starts with: the first ones, then the best of
/// earlier sessions, and those of other devices and problems.
std::vector<Config> seeds(const Operation& operation, const Space& space,
                          const SessionResult& result, const SessionOptions& options,
                          const TunedDb& db);

}  // namespace greta::tuner
