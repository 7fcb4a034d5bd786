#include "tuner/search/untried.hpp"

namespace greta::tuner {

Untried::Untried(const SearchProblem& problem)
    : space_(*problem.space), seeds_(problem.seeds), order_(problem.space->count(), problem.seed) {}

std::optional<Config> Untried::take(std::uint64_t index) {
  if (!given_.insert(index).second) return std::nullopt;
  return space_.at(index);
}

std::optional<Config> Untried::next_seed() {
  while (seeds_given_ < seeds_.size()) {
    const auto index = space_.index(seeds_[seeds_given_++]);
    if (!index) throw Error("seed \"" + seeds_[seeds_given_ - 1].text() + "\" is not valid");
    if (auto config = take(*index)) return config;
  }
  return std::nullopt;
}

std::optional<Config> Untried::next_random() {
  while (place_ < space_.count()) {
    if (auto config = take(order_[place_++])) return config;
  }
  return std::nullopt;
}

}  // namespace greta::tuner
