#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "kernels/model/space.hpp"

namespace greta::kernels {
namespace {

/// The configuration of the first value of each parameter.
Config first_of(const Alternative& alternative) {
  Config config{alternative.variant, {}, alternative.words};
  for (const Parameter& p : alternative.parameters) config.values.emplace_back(p.name, p.values[0]);
  return config;
}

}  // namespace

std::string why_empty(const std::vector<Alternative>& alternatives) {
  std::vector<std::string> variants;
  for (const Alternative& alternative : alternatives) {
    std::vector<std::string> reasons;
    for (std::size_t i = 0; i < alternative.constraints.size(); ++i) {
      Alternative without = alternative;
      without.constraints.erase(without.constraints.begin() + static_cast<std::ptrdiff_t>(i));
      if (Space({std::move(without)}).count() == 0) continue;
      const Constraint& constraint = alternative.constraints[i];
      const Config first = first_of(alternative);
      const bool explains = constraint.explain && !constraint.condition.holds(first);
      reasons.push_back(constraint.name + ": " +
                        (explains ? constraint.explain(first) : constraint.reason));
    }
    if (reasons.empty()) continue;
    variants.push_back(fmt::format("{}: {}", alternative.variant, fmt::join(reasons, ", or ")));
  }
  return fmt::format("{}", fmt::join(variants, "; "));
}

}  // namespace greta::kernels
