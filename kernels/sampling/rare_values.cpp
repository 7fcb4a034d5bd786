#include "kernels/sampling/rare_values.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"

namespace greta::kernels {

RareValues::Counts& RareValues::counts_of(std::string_view variant) {
  const auto found = counts_.find(variant);
  if (found != counts_.end()) return found->second;
  Counts& counts = counts_[std::string(variant)];
  for (const Attribute& attribute : operation_.attributes) {
    if (attribute.packed != nullptr) continue;
    for (const std::string& value : values_to_test(attribute, {})) {
      if (value != attribute.fallback) counts[{attribute.name, value}] = {};
    }
  }
  return counts;
}

std::optional<RareValues::Value> RareValues::draw(std::string_view variant,
                                                  std::mt19937_64& random) {
  constexpr int of_choice = 8;  // draws that count as much as a choice
  constexpr int patience = 64;  // draws after which a value is one that the variant cannot have
  std::vector<Counts::value_type*> rarest;
  int least = std::numeric_limits<int>::max();
  for (auto& one : counts_of(variant)) {
    if (one.second.chosen == 0 && one.second.drawn >= patience) continue;
    const int cost = of_choice * one.second.chosen + one.second.drawn;
    if (cost < least) rarest.clear();
    if (cost <= least) rarest.push_back(&one);
    least = std::min(least, cost);
  }
  if (rarest.empty()) return std::nullopt;
  auto& [value, count] = *rarest[uniform_below(random, rarest.size())];
  ++count.drawn;
  return value;
}

void RareValues::add(std::string_view variant, const Problem& problem) {
  Counts& counts = counts_of(variant);
  for (const auto& attribute : problem.attributes) {
    const auto found = counts.find(attribute);
    if (found != counts.end()) ++found->second.chosen;
  }
}

}  // namespace greta::kernels
