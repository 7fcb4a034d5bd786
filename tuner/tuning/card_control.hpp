#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner {

/// Cards whose times of the same kernel differ by at most this fraction measure alike.
inline constexpr double card_tolerance = 0.02;

/// Which cards of one model may share the candidates of a problem.
struct CardControl {
  std::vector<Evaluator*> alike;   ///< the largest group that measures alike; at least one
  std::vector<std::string> notes;  ///< what was measured, and which cards were left out, for users
};

/// Times the default configuration of a problem on each card, in turns, so that drift meets all of
/// them. Different times would rank candidates by their card, so only cards whose median times
/// agree within card_tolerance may share a search. A card that fails is left out. Throws what
/// evaluators throw if it is not of a card, or if all cards fail.
CardControl compare_cards(const std::vector<Evaluator*>& cards, const Problem& problem, bool cold,
                          std::uint64_t seed, const std::atomic<bool>& stop);

}  // namespace greta::tuner
