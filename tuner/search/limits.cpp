#include "tuner/search/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/device/text/spelling.hpp"

namespace greta::tuner {
namespace {

template <typename T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Returns the alternative within limits, or nothing if it is outside.
std::optional<Alternative> limited(Alternative alternative, const SearchLimits& limits) {
  if (!limits.variants.empty() && !contains(limits.variants, alternative.variant)) return {};
  for (const auto& [name, values] : limits.values) {
    const auto parameter =
        std::find_if(alternative.parameters.begin(), alternative.parameters.end(),
                     [&](const Parameter& one) { return one.name == name; });
    if (parameter == alternative.parameters.end()) return {};
    std::erase_if(parameter->values, [&](int value) { return !contains(values, value); });
    if (parameter->values.empty()) return {};
  }
  return alternative;
}

Result<void> check_variants(const Space& space, const SearchLimits& limits) {
  std::vector<std::string> known;
  for (const auto& alternative : space.alternatives()) known.push_back(alternative.variant);
  for (const auto& variant : limits.variants) {
    if (contains(known, variant)) continue;
    return bad_field("variant", variant, must_be_one_of(variant, known));
  }
  return {};
}

Result<void> check_values(const Space& space, const SearchLimits& limits, const std::string& name,
                          const std::vector<int>& values) {
  const char* const field = limits.ranges.contains(name) ? "range" : "fix";
  std::set<int> known;
  std::vector<std::string> names;
  for (const auto& alternative : space.alternatives()) {
    for (const auto& parameter : alternative.parameters) {
      if (!contains(names, parameter.name)) names.push_back(parameter.name);
      if (parameter.name == name) known.insert(parameter.values.begin(), parameter.values.end());
    }
  }
  if (known.empty()) {
    return bad_field(field, name, must_be_one_of(name, names));
  }
  for (const int value : values) {
    if (known.contains(value)) continue;
    return bad_field(field, fmt::format("{}={}", name, value),
                     fmt::format("the values of {} are {}", name, fmt::join(known, ", ")));
  }
  return {};
}

/// Returns "; " and which constraints reject all configurations.
std::string why_nothing(const Space& space) {
  const std::string why = why_empty(space.alternatives());
  return why.empty() ? why : "; " + why;
}

}  // namespace

std::string SearchLimits::text(const ValueWords& words) const {
  std::string text;
  if (!variants.empty()) text = fmt::format("variant {}", fmt::join(variants, ","));
  for (const auto& [name, allowed] : values) {
    text += fmt::format("{}{}=", text.empty() ? "" : ", ", name);
    for (const int value : allowed)
      text += (value == allowed.front() ? "" : ",") + shown_value(words, name, value);
  }
  return text;
}

Space limited(const Space& space, const SearchLimits& limits) {
  std::vector<Alternative> alternatives;
  for (const auto& alternative : space.alternatives()) {
    if (auto within = limited(alternative, limits)) alternatives.push_back(*std::move(within));
  }
  return Space(std::move(alternatives));
}

Result<void> check_limits(const Space& space, const SearchLimits& limits) {
  if (limits.empty()) return {};
  if (auto known = check_variants(space, limits); !known) return known;
  for (const auto& [name, values] : limits.values) {
    if (auto known = check_values(space, limits, name, values); !known) return known;
  }
  const Space within = limited(space, limits);
  if (within.count() > 0) return {};
  return bad_field(
      limits.values.empty() ? "variant" : "range",
      limits.values.empty() ? fmt::format("{}", fmt::join(limits.variants, ",")) : limits.text(),
      "no configuration is valid within these limits" + why_nothing(within));
}

}  // namespace greta::tuner
