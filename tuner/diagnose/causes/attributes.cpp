#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "tuner/diagnose/causes/causes.hpp"

namespace greta::tuner {
namespace {

std::string numeral(double value) {
  return fmt::format("{:.9g}", value);
}

/// Returns other values of an attribute that kernels may use by mistake.
std::set<std::string> other_values(const Attribute& attribute, const std::string& value,
                                   const Problem& problem) {
  std::set<std::string> others(attribute.allowed.begin(), attribute.allowed.end());
  others.insert(attribute.examples.begin(), attribute.examples.end());
  others.insert(attribute.fallback);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool numeric = !value.empty() && *end == '\0';
  if (numeric && attribute.packed == nullptr) {
    for (const double other : {number + 1, number - 1, 0.0, 1.0, -number, 2 * number, number / 2})
      others.insert(numeral(other));
  }
  if (attribute.name == "scale") {
    others.insert("1");
    if (const auto dim = problem.dim("dim", 0); dim > 0) {
      const auto length = static_cast<double>(dim);
      others.insert({numeral(1 / length), numeral(std::sqrt(length)), numeral(1.0 / 8)});
    }
  }
  others.erase(value);
  others.erase("");
  return others;
}

}  // namespace

void offer_attributes(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Problem& problem = evidence.problem();
  for (const Attribute& attribute : evidence.operation().attributes) {
    const std::string value = problem.attribute(attribute.name, attribute.fallback);
    for (const std::string& other : other_values(attribute, value, problem)) {
      const Problem changed = with_attribute(evidence.operation(), problem, attribute, other);
      if (!check_problem(evidence.operation(), changed)) continue;
      if (attribute.name == "alpha" && other == "0") {
        judge.offer_problem("zero result",
                            "the product counts as 0: what it is made of is never loaded or added, "
                            "or read from where nothing was loaded to",
                            changed, evidence.inputs());
        continue;
      }
      judge.offer_problem(attribute.name == "mask" ? "wrong mask" : "wrong attribute",
                          fmt::format("the kernel computes as with {0}={1} in place of {0}={2}",
                                      attribute.name, other, value),
                          changed, evidence.inputs());
    }
  }
}

}  // namespace greta::tuner
