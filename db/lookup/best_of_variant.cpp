#include "db/lookup/best_of_variant.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/model/problem_rules.hpp"
#include "kernels/prior/predicted_config.hpp"
#include "runtime/device/text/spelling.hpp"

namespace greta::db {
namespace {

Failure broken(std::string_view why) {
  return Failure{Status::constraints, std::string(why), {}};
}

/// Leaves each parameter that has a given value only this one.
Result<void> restrict_to(Alternative& space, const UseValues& values) {
  for (const auto& [name, text] : values) {
    const auto found = std::find_if(space.parameters.begin(), space.parameters.end(),
                                    [&](const Parameter& one) { return one.name == name; });
    const auto number = number_of(space, name, text);
    if (found == space.parameters.end())
      return broken(fmt::format("domain: {} has no parameter {} here", space.variant, name));
    const auto known = std::find(found->values.begin(), found->values.end(), number.value_or(0));
    if (!number || known == found->values.end()) {
      return broken(fmt::format("domain: {}={} is not one of {}", name, text,
                                fmt::join(found->values, ", ")));
    }
    found->values = {*number};
  }
  return {};
}

/// Returns the configuration that a restricted space leaves, if each parameter has a value.
std::optional<Config> only_config(const Alternative& space, std::size_t given) {
  if (given != space.parameters.size()) return std::nullopt;
  Config config{space.variant, {}, space.words};
  for (const Parameter& one : space.parameters)
    config.values.emplace_back(one.name, one.values.front());
  return config;
}

/// Returns the best configuration that the databases know of those that a space has.
std::optional<BestOfVariant> best_recorded(const VariantQuestion& question,
                                           const Alternative& space) {
  using enum BestOfVariant::Source;
  const auto wanted = [&](const Config& config) {
    return config.variant == space.variant && !rejects(space, config);
  };
  const auto& [operation, problem, device, known, untuned] = question;
  if (auto config = known.fastest(problem, device, wanted))
    return BestOfVariant{*std::move(config), recorded};
  const Problem representative = bucket(operation, problem);
  auto found = known.find(operation, {problem, representative}, device, wanted);
  if (!found) return std::nullopt;
  const auto source = found->origin == LookupOrigin::exact           ? recorded
                      : found->origin == LookupOrigin::nearest_shape ? nearest_shape
                                                                     : same_architecture;
  return BestOfVariant{std::move(found->usable.config), source};
}

/// Returns the best known configuration of the whole variant with the given values in place of its
/// own, if that is valid.
std::optional<BestOfVariant> with_values(const VariantQuestion& question, const Alternative& whole,
                                         const Alternative& restricted) {
  auto best = best_recorded(question, whole);
  if (!best) return std::nullopt;
  for (const Parameter& one : restricted.parameters) {
    if (one.values.size() == 1) best->config.value(one.name) = one.values.front();
  }
  if (rejects(restricted, best->config)) return std::nullopt;
  return best;
}

/// Returns the constraints that prevent a space from having a valid configuration.
std::string why_none(const Alternative& variant) {
  const std::string reasons = why_empty({variant});
  return reasons.empty() ? "it has no valid configuration" : reasons;
}

}  // namespace

std::string_view to_string(BestOfVariant::Source source) {
  switch (source) {
    case BestOfVariant::Source::recorded:
      return "recorded";
    case BestOfVariant::Source::nearest_shape:
      return "nearest shape";
    case BestOfVariant::Source::same_architecture:
      return "same architecture";
    case BestOfVariant::Source::predicted:
      return "untuned";
  }
  return "unknown";
}

Result<BestOfVariant> best_of_variant(const VariantQuestion& question, std::string_view variant,
                                      const UseValues& values) {
  const auto& [operation, problem, device, known, untuned] = question;
  const auto names = operation.variant_names();
  if (std::find(names.begin(), names.end(), variant) == names.end()) {
    return invalid_argument(fmt::format("{}: {}", variant, must_be_one_of(variant, names)));
  }
  const Alternative whole = operation.variant(variant).space(operation.shape(problem), device);
  Alternative space = whole;
  if (auto good = restrict_to(space, values); !good) return good.failure();
  if (auto config = only_config(space, values.size())) {
    if (const auto why = rejects(space, *config)) return broken(*why);
    return BestOfVariant{*std::move(config), BestOfVariant::Source::predicted};
  }
  if (auto best = best_recorded(question, space)) return *std::move(best);
  if (!values.empty()) {
    if (auto best = with_values(question, whole, space)) return *std::move(best);
  }
  if (untuned && untuned->variant == variant && !rejects(space, *untuned))
    return BestOfVariant{*untuned, BestOfVariant::Source::predicted};
  if (auto config = predicted_of_variant(operation, space, problem, device))
    return BestOfVariant{*std::move(config), BestOfVariant::Source::predicted};
  return broken(why_none(space));
}

}  // namespace greta::db
