#include "tuner/search/enumeration.hpp"

namespace greta::tuner {

Untried::Untried(const SearchProblem& problem)
    : space_(*problem.space), seeds_(problem.seeds), order_(problem.space->count(), problem.seed) {}

std::optional<Choice> Untried::take(std::uint64_t index) {
  if (!given_.insert(index).second) return std::nullopt;
  return space_.choice(index);
}

std::optional<Choice> Untried::next_seed() {
  while (seeds_given_ < seeds_.size()) {
    const Choice& seed = seeds_[seeds_given_++];
    const auto index = space_.index(seed);
    if (!index) throw Error("seed \"" + space_.config(seed).text() + "\" is not valid");
    if (auto choice = take(*index)) return choice;
  }
  return std::nullopt;
}

std::optional<Choice> Untried::next_random() {
  while (place_ < space_.count()) {
    if (auto choice = take(order_[place_++])) return choice;
  }
  return std::nullopt;
}

}  // namespace greta::tuner
