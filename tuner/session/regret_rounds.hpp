#pragma once

#include "db/tuned_db.hpp"
#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner {

/// Verifies a neighbour's configuration on this problem, then times it and the winner in
/// interleaved rounds. Fails with the reason if one of them is incorrect or the rounds are cut
/// short.
Result<Regret> measure_regret(Evaluator& evaluator, const StoredWinner& result,
                              const StoredWinner& neighbour, std::uint64_t seed);

}  // namespace greta::tuner
