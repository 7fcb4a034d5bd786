#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "kernels/sampling/candidates.hpp"

namespace greta::kernels {
namespace {

/// Returns the configurations of the vendor's library in the order of its ranking, those with its
/// own number of slices first: most others are not ranked.
std::vector<Candidate> ranked_candidates(const Problem& problem, const Space& space,
                                         std::size_t count) {
  std::vector<Candidate> choices;
  for (std::uint64_t i = 0; i < space.count(); ++i) choices.push_back({problem, space.at(i)});
  const auto order = [](const Candidate& candidate) {
    return std::pair(int{candidate.config["SPLITK"]}, int{candidate.config["RANK"]});
  };
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const Candidate& a, const Candidate& b) { return order(a) < order(b); });
  choices.resize(std::min(choices.size(), count));
  return choices;
}

}  // namespace

std::vector<Candidate> sample_candidates(const Operation& operation, const Problem& problem,
                                         const DeviceInfo& device, std::string_view variant,
                                         std::size_t count, std::uint64_t seed) {
  // vendor_variant is not in the operation's space.
  const Space space =
      variant.empty() ? operation.space(problem, device)
                      : Space({operation.variant(variant).space(operation.shape(problem), device)});
  if (variant == vendor_variant) return ranked_candidates(problem, space, count);
  const std::uint64_t there = space.count();
  std::mt19937_64 random(seed);
  std::set<Config> drawn;
  std::vector<Candidate> choices;
  while (choices.size() < std::min<std::uint64_t>(count, there)) {
    const Config config = variant.empty() ? space.sample(random) : space.sample(variant, random);
    if (drawn.insert(config).second) choices.push_back({problem, config});
  }
  return choices;
}

}  // namespace greta::kernels
