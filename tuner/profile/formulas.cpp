#include "tuner/profile/formulas.hpp"

#include <algorithm>

namespace greta::tuner {
namespace {

std::optional<double> sum(const CounterReading& reading, const std::vector<Term>& terms) {
  double total = 0;
  for (const Term& term : terms) {
    const auto found = reading.values.find(term.counter);
    if (found == reading.values.end()) return std::nullopt;
    total += term.weight * found->second;
  }
  return total;
}

}  // namespace

std::optional<double> Formula::value(const CounterReading& reading) const {
  const auto top = sum(reading, above);
  if (!top) return top;
  double bottom = 1;
  if (!below.empty()) {
    const auto divisor = sum(reading, below);
    if (!divisor) return divisor;
    bottom = *divisor;
  }
  for (const std::string& number : per) {
    const auto found = reading.values.find(number);
    if (found == reading.values.end()) return std::nullopt;
    bottom *= found->second;
  }
  if (bottom == 0) return std::nullopt;
  return *top * scale / bottom;
}

bool FormulaSet::fits(const CounterSource& of) const {
  if (!of.name.starts_with(source)) return false;
  return chips.empty() || std::any_of(chips.begin(), chips.end(), [&](std::string_view chip) {
           return of.chip.starts_with(chip);
         });
}

const std::vector<FormulaSet>& formula_sets() {
  static const std::vector<FormulaSet> sets = [] {
    std::vector<FormulaSet> all{cupti_formulas()};
    for (FormulaSet& set : rocprofiler_formulas()) all.push_back(std::move(set));
    for (FormulaSet& set : vulkan_formulas()) all.push_back(std::move(set));
    return all;
  }();
  return sets;
}

}  // namespace greta::tuner
