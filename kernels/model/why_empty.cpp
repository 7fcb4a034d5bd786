#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "kernels/model/first_valid.hpp"

namespace greta::kernels {
namespace {

/// The configuration of the first value of each parameter.
Config first_of(const Alternative& alternative) {
  Config config{alternative.variant, {}, alternative.words};
  for (const Parameter& p : alternative.parameters) config.values.emplace_back(p.name, p.values[0]);
  return config;
}

/// Returns the constraints that contradict those before them, when these are added one by one.
std::vector<std::size_t> contradicting(const Alternative& alternative) {
  std::vector<std::size_t> numbers;
  Alternative kept = alternative;
  kept.constraints.clear();
  if (!first_valid(kept)) return {};
  for (std::size_t i = 0; i < alternative.constraints.size(); ++i) {
    kept.constraints.push_back(alternative.constraints[i]);
    if (first_valid(kept)) continue;
    kept.constraints.pop_back();
    numbers.push_back(i);
  }
  return numbers;
}

}  // namespace

std::string why_empty(const std::vector<Alternative>& alternatives) {
  std::vector<std::string> variants;
  for (const Alternative& alternative : alternatives) {
    std::vector<std::string> reasons;
    const auto add = [&](const Constraint& constraint) {
      const Config first = first_of(alternative);
      const bool explains = constraint.explain && !constraint.condition.holds(first);
      reasons.push_back(constraint.name + ": " +
                        (explains ? constraint.explain(first) : constraint.reason));
    };
    for (std::size_t i = 0; i < alternative.constraints.size(); ++i) {
      Alternative without = alternative;
      without.constraints.erase(without.constraints.begin() + static_cast<std::ptrdiff_t>(i));
      if (first_valid(without)) add(alternative.constraints[i]);
    }
    const char* between = ", or ";
    if (reasons.empty()) {
      for (const std::size_t i : contradicting(alternative)) add(alternative.constraints[i]);
      between = ", and ";
    }
    if (reasons.empty()) continue;
    variants.push_back(fmt::format("{}: {}", alternative.variant, fmt::join(reasons, between)));
  }
  return fmt::format("{}", fmt::join(variants, "; "));
}

}  // namespace greta::kernels
