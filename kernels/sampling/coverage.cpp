#include "kernels/sampling/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "kernels/sampling/random_problem.hpp"

namespace greta::kernels {
namespace {

Feature types_feature(std::string_view variant, const Problem& problem) {
  return fmt::format("{} {} to {}", variant, to_string(problem.dtype),
                     to_string(problem.out_dtype));
}

Feature value_feature(std::string_view variant, std::string_view name, std::string_view value) {
  return fmt::format("{} {}={}", variant, name, value);
}

Feature case_feature(std::string_view variant, const Division& division, std::int64_t part,
                     DivisionCase which) {
  constexpr std::string_view names[] = {"whole", "rest", "less"};
  const std::string_view name = names[static_cast<std::size_t>(which)];
  if (division.parameter.empty()) return fmt::format("{} {} {}", variant, division.name, name);
  return fmt::format("{} {} by {}={} {}", variant, division.name, division.parameter, part, name);
}

std::vector<Feature> path_features(const Variant& variant, const ProblemShape& shape,
                                   const Config& config) {
  std::vector<Feature> list;
  if (!variant.paths) return list;
  for (const std::string& path : variant.paths(shape, config)) {
    list.push_back(fmt::format("{} path {}", variant.name, path));
  }
  return list;
}

}  // namespace

std::optional<DivisionCase> case_of(const Division& division) {
  if (division.part <= 1) return std::nullopt;
  if (division.extent < division.part) return DivisionCase::less;
  return division.extent % division.part == 0 ? DivisionCase::whole : DivisionCase::rest;
}

int log2_of_parts(const Division& division) {
  int size = 0;
  while (size < 4 && division.part << size < division.extent) ++size;
  return size;
}

int remainder_class(std::int64_t extent) {
  constexpr int most = 8;
  int power = 0;
  for (; extent > 0 && extent % 2 == 0 && power < most; extent /= 2) ++power;
  const bool few = extent <= 4;
  return 4 * power + static_cast<int>(few ? extent / 2 : 2 + extent / 2 % 2);
}

std::vector<Feature> problem_features(const Operation& operation, const Problem& problem,
                                      std::string_view variant) {
  std::vector<Feature> list;
  list.push_back(types_feature(variant, problem));
  for (const Attribute& attribute : operation.attributes) {
    if (attribute.packed != nullptr) {
      const bool apart = problem.stride(attribute.name, attribute.packed(problem)) != 0;
      list.push_back(fmt::format("{} {} {}", variant, attribute.name, apart ? "apart" : "packed"));
    } else {
      list.push_back(value_feature(variant, attribute.name,
                                   problem.attribute(attribute.name, attribute.fallback)));
    }
  }
  for (const Dimension& dimension : operation.dimensions) {
    const std::int64_t extent = problem.dim(dimension.name, 0);
    if (dimension.optional) {
      list.push_back(
          fmt::format("{} {} {}", variant, dimension.name, extent > 0 ? "given" : "none"));
      continue;
    }
    if (has_few_extents(dimension)) {
      list.push_back(value_feature(variant, dimension.name, std::to_string(extent)));
    }
    for (const auto& [name, other] : problem.dims) {
      if (name != dimension.fallback) continue;
      list.push_back(
          fmt::format("{} {} {}", variant, dimension.name, extent == other ? "same" : "other"));
    }
  }
  return list;
}

namespace {

/// Adds the features of a variant's valid configurations of one problem, if there are any. Returns
/// whether there are.
bool list_features(const Operation& operation, const Problem& problem, const ProblemShape& shape,
                   const DeviceInfo& device, const Variant& variant, std::mt19937_64& random,
                   std::set<Feature>& list) {
  std::vector<Alternative> alternatives;  // a list in braces would copy it
  alternatives.push_back(variant.space(shape, device));
  const Space space(std::move(alternatives));
  if (space.count() == 0) return false;
  for (Feature& one : problem_features(operation, problem, variant.name))
    list.insert(std::move(one));
  constexpr int of_paths = 16;
  for (int i = 0; variant.paths && i < of_paths; ++i) {
    for (Feature& one : path_features(variant, shape, space.sample(random)))
      list.insert(std::move(one));
  }
  const auto divisions = variant.divisions(shape, space.sample(random));
  for (const Division& division : divisions) {
    if (!division.parameter.empty()) continue;
    for (Feature& one : cases(variant.name, division, division.part)) list.insert(std::move(one));
  }
  for (const Parameter& parameter : space.used(variant.name)) {
    for (const int value : parameter.values) {
      list.insert(value_feature(variant.name, parameter.name, std::to_string(value)));
      for (const Division& division : divisions) {
        if (division.parameter != parameter.name) continue;
        for (Feature& one : cases(variant.name, division, value)) list.insert(std::move(one));
      }
    }
  }
  return true;
}

/// Returns the other values than its default of an attribute that has few.
std::vector<std::string> other_values(const Attribute& attribute) {
  constexpr std::size_t few = 4;
  if (attribute.allowed.size() > few) return {};
  std::vector<std::string> others(attribute.allowed.begin(), attribute.allowed.end());
  std::erase(others, attribute.fallback);
  return others;
}

/// Returns problems of the operation's typical sizes, with default attributes and with another
/// value of an attribute that has few, and random problems: two with each value of an attribute
/// alone, six with it and the other values of each attribute that has few, which a variant
/// may need, and others with values at random, since some values are not allowed without some
/// others.
std::vector<Problem> probes(const Operation& operation, const DTypes& types,
                            std::mt19937_64& random) {
  constexpr int alone = 2, together = 40;
  std::vector<Problem> list;
  std::vector<std::pair<std::string, std::vector<std::string>>> others;  // by attribute
  for (const Attribute& attribute : operation.attributes) {
    others.emplace_back(attribute.name, other_values(attribute));
  }
  for (std::size_t i = 0; i < operation.sizes.size(); ++i) {
    list.push_back(typical_problem(operation, types, i));
    for (const auto& [name, values] : others) {
      for (const std::string& value : values) {
        Problem problem = typical_problem(operation, types, i);
        problem.attributes.emplace_back(name, value);
        if (check_problem(operation, problem)) list.push_back(std::move(problem));
      }
    }
  }
  // Adds a problem of a typical size, if it is allowed.
  const auto add_typical = [&](const AttributeValues& values) {
    Problem problem =
        typical_problem(operation, types, uniform_below(random, operation.sizes.size()));
    problem.attributes = values;
    if (check_problem(operation, problem)) list.push_back(std::move(problem));
  };
  // Adds the first allowed problem of a few.
  const auto add = [&](const auto& draw_values) {
    constexpr int tries = 12;
    for (int i = 0; i < tries; ++i) {
      Problem problem = random_problem(operation, types, draw_values(), {}, random);
      if (i == tries - 1) drop_refused_attributes(operation, problem);
      if (!check_problem(operation, problem)) continue;
      list.push_back(std::move(problem));
      return;
    }
  };
  for (const Attribute& attribute : operation.attributes) {
    if (attribute.packed != nullptr) continue;
    for (const std::string& value : values_to_test(attribute, {})) {
      const AttributeValues only{{attribute.name, value}};
      for (int i = 0; i < alone; ++i) {
        add([&] { return value == attribute.fallback ? AttributeValues{} : only; });
      }
      for (const auto& [other, needed] : others) {
        if (other == attribute.name || needed.empty()) continue;
        for (std::size_t i = 0; i < std::max<std::size_t>(needed.size(), 6); ++i) {
          AttributeValues both{{other, needed[i % needed.size()]}};
          if (value != attribute.fallback) both.emplace_back(attribute.name, value);
          i == 0 ? add_typical(both) : add([&] { return both; });
        }
      }
    }
  }
  for (int i = 0; i < together; ++i) {
    add([&] {
      AttributeValues values;
      for (const Attribute& attribute : operation.attributes) {
        if (attribute.packed != nullptr) continue;
        const auto tested = values_to_test(attribute, {});
        const std::string& value = tested[uniform_below(random, tested.size())];
        if (value != attribute.fallback) values.emplace_back(attribute.name, value);
      }
      return values;
    });
  }
  return list;
}

}  // namespace

std::vector<Feature> cases(std::string_view variant, const Division& division, std::int64_t part) {
  std::vector<Feature> list;
  if (part <= 1) return list;
  for (const auto which : {DivisionCase::whole, DivisionCase::rest, DivisionCase::less}) {
    if (which == DivisionCase::less && part < division.may_exceed) continue;
    list.push_back(case_feature(variant, division, part, which));
  }
  return list;
}

std::vector<Feature> features(const Operation& operation, const Candidate& choice) {
  std::vector<Feature> list = problem_features(operation, choice.problem, choice.config.variant);
  std::vector<Feature> rest = config_features(operation.variant(choice.config.variant),
                                              operation.shape(choice.problem), choice.config);
  std::move(rest.begin(), rest.end(), std::back_inserter(list));
  return list;
}

std::vector<Feature> config_features(const Variant& variant, const ProblemShape& shape,
                                     const Config& config) {
  std::vector<Feature> list;
  for (const auto& [name, value] : config.values) {
    list.push_back(value_feature(variant.name, name, std::to_string(value)));
  }
  for (const Division& division : variant.divisions(shape, config)) {
    if (const auto which = case_of(division))
      list.push_back(case_feature(variant.name, division, division.part, *which));
  }
  for (Feature& one : path_features(variant, shape, config)) list.push_back(std::move(one));
  return list;
}

std::set<Feature> features_on(const Operation& operation, const DeviceInfo& device,
                              std::string_view variant) {
  // A space takes milliseconds. After this number of problems without a new feature of a variant,
  // only problems with new features of their own are examined.
  constexpr int patience = 150;
  std::set<Feature> list;
  std::map<std::string_view, int> in_vain;  // by variant
  std::mt19937_64 random(1);
  for (const DTypes& types : operation.dtypes) {
    for (const Problem& problem : probes(operation, types, random)) {
      const ProblemShape shape = operation.shape(problem);
      for (const Variant& one : operation.variants) {
        if (!variant.empty() && one.name != variant) continue;
        int& vain = in_vain[one.name];
        if (vain >= patience) {
          const auto own = problem_features(operation, problem, one.name);
          if (std::all_of(own.begin(), own.end(),
                          [&](const Feature& feature) { return list.contains(feature); })) {
            continue;
          }
        }
        const std::size_t before = list.size();
        if (!list_features(operation, problem, shape, device, one, random, list)) continue;
        vain = list.size() > before ? 0 : vain + 1;
      }
    }
  }
  return list;
}

const std::set<Feature>& Coverage::existing() const {
  if (!all_) all_ = features_on(operation_, device_, variant_);
  return *all_;
}

void Coverage::add(const Candidate& choice) {
  for (Feature& feature : features(operation_, choice)) met_.insert(std::move(feature));
}

std::vector<Feature> Coverage::missing() const {
  std::vector<Feature> list;
  std::set_difference(existing().begin(), existing().end(), met_.begin(), met_.end(),
                      std::back_inserter(list));
  return list;
}

std::vector<Feature> Coverage::unlisted() const {
  std::vector<Feature> list;
  std::set_difference(met_.begin(), met_.end(), existing().begin(), existing().end(),
                      std::back_inserter(list));
  return list;
}

}  // namespace greta::kernels
