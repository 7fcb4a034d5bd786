#pragma once

#include "db/tuned_db.hpp"
#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner {

/// Verifies a neighbour's configuration here and times it and the winner in interleaved rounds.
/// Fails with the reason where one of them is not right, or the rounds are cut short.
Result<Regret> measure_regret(Evaluator& evaluator, const StoredWinner& result,
                              const StoredWinner& neighbour, std::uint64_t seed);

}  // namespace greta::tuner
