#include "kernels/sampling/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "kernels/model/first_valid.hpp"
#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "kernels/sampling/coverage.hpp"
#include "kernels/sampling/deck.hpp"
#include "kernels/sampling/novelty.hpp"
#include "kernels/sampling/random_problem.hpp"
#include "kernels/sampling/rare_values.hpp"

namespace greta::kernels {
namespace {

struct AttributeDeck {
  const Attribute* attribute;
  Deck<std::string> values;
};

/// A parameter value to cover. If `parameter` is empty, a length of parts for extents.
struct Aim {
  std::string parameter;
  int value;

  bool operator==(const Aim&) const = default;
};

/// The properties that distinguish kernels most.
struct Kind {
  DTypes types;
  std::string variant;
  std::optional<Aim> by;  ///< a value of Variant::kernels_by

  bool operator==(const Kind&) const = default;
};

/// What earlier choices of a variant have. Parameters and divisions are those of its latest
/// problem.
struct Seen {
  std::vector<Parameter> parameters;
  std::vector<Division> divisions;
  std::vector<Problem> problems;  ///< with features that no choice before had
};

/// A value of a parameter that problems may be drawn for.
struct Target {
  int aimed = 0;            ///< how often they were
  std::uint64_t asked = 0;  ///< the call of find() that `open` is of
  bool open = false;        ///< whether it has uncovered features
};

/// On a CPU, threads that meet at barriers, as those of `sample` do a hundred times, take 15 us
/// each, so that these take four seconds at most.
std::uint64_t most_threads_launched(const DeviceInfo& device) {
  return std::uint64_t{1} << (device.is_cpu() ? 18 : 22);
}

class Dealer {
 public:
  Dealer(const Operation& operation, const DeviceInfo& device, std::string_view variant,
         std::uint64_t seed)
      : operation_(operation),
        device_(device),
        random_(seed),
        kinds_(all_kinds(variant)),
        rare_(operation) {
    for (const Attribute& attribute : operation_.attributes) {
      if (attribute.packed != nullptr) continue;
      attributes_.push_back(
          {&attribute, Deck(attribute.allowed.empty() ? attribute.examples : attribute.allowed)});
    }
  }

  /// Returns std::nullopt if no problem has a valid configuration.
  std::optional<Candidate> deal() {
    while (!kinds_.empty()) {
      const Kind kind = kinds_.draw(random_);
      if (auto choice = find(kind)) return choice;
      // Few problems have some kernels, such as deep pipelines: later ones vary what others have.
      constexpr int attempts = 3;
      missed_.push_back(kind);
      if (possible_ && std::count(missed_.begin(), missed_.end(), kind) < attempts) continue;
      // This device does not support it, nor other kernels of the variant if it may run no problem.
      kinds_.discard([&](const Kind& other) {
        return other.variant == kind.variant && other.types == kind.types &&
               (!possible_ || other.by == kind.by);
      });
    }
    return std::nullopt;
  }

 private:
  Deck<Kind> all_kinds(std::string_view variant) {
    std::vector<Kind> kinds;
    for (const DTypes& types : operation_.dtypes) {
      for (const Variant& each : operation_.variants) {
        if (!variant.empty() && each.name != variant) continue;
        std::vector<Kind> of_variant = kinds_of(each, types);
        std::move(of_variant.begin(), of_variant.end(), std::back_inserter(kinds));
      }
    }
    return Deck(std::move(kinds));
  }

  std::vector<Kind> kinds_of(const Variant& variant, const DTypes& types) const {
    std::vector<Kind> kinds;
    if (!variant.kernels_by.empty()) {
      for (const Parameter& parameter :
           variant.space(operation_.shape(typical_problem(operation_, types)), device_)
               .parameters) {
        if (parameter.name != variant.kernels_by) continue;
        for (const int value : parameter.values) {
          kinds.push_back({types, variant.name, Aim{parameter.name, value}});
        }
      }
    }
    if (kinds.empty()) kinds.push_back({types, variant.name, std::nullopt});
    return kinds;
  }

  /// Draws values of the attributes that are not strides; `usual`: most of them have their default.
  AttributeValues draw_attributes(const std::string& variant, bool usual) {
    AttributeValues values;
    for (AttributeDeck& deck : attributes_) {
      if (usual && uniform_below(random_, 4) > 0) continue;
      std::string value = draw_value(deck, variant);
      if (value != deck.attribute->fallback) {
        values.emplace_back(deck.attribute->name, std::move(value));
      }
    }
    return values;
  }

  /// Half of the time an uncovered value replaces the drawn one; not always, as some attributes
  /// cannot be combined with some types, and not forever, as some variants do not support some
  /// values.
  std::string draw_value(AttributeDeck& from, const std::string& variant) {
    auto& [attribute, deck] = from;
    std::string value = deck.draw(random_);
    std::vector<std::string> unmet;
    for (const std::string& other : values_to_test(*attribute, {})) {
      const auto feature = fmt::format("{} {}={}", variant, attribute->name, other);
      if (!novelty_.has(feature) && wanted_[feature] < patience) unmet.push_back(other);
    }
    if (!unmet.empty() && uniform_below(random_, 2) == 0) {
      value = unmet[uniform_below(random_, unmet.size())];
      ++wanted_[fmt::format("{} {}={}", variant, attribute->name, value)];
    }
    return value;
  }

  /// Returns a problem with a value that few choices of the variant have: one of several draws, or
  /// a variation of an earlier problem. Returns std::nullopt if none of these is valid.
  std::optional<Problem> draw_rare(const Kind& kind, std::int64_t part) {
    constexpr int tries = 40;
    const auto rare = rare_.draw(kind.variant, random_);
    if (!rare) return std::nullopt;
    const auto has = [&](const Problem& problem) {
      return problem.attribute(rare->first, "") == rare->second;
    };
    std::vector<Problem> known;
    std::ranges::copy_if(seen_[kind.variant].problems, std::back_inserter(known), has);
    for (int i = 0; i < tries; ++i) {
      AttributeValues values = draw_attributes(kind.variant, i % 2 == 0);
      std::erase_if(values, [&](const auto& one) { return one.first == rare->first; });
      values.push_back(*rare);
      Problem problem = !known.empty() && i % 4 == 3
                            ? vary(kind, known, part)
                            : random_problem(operation_, kind.types, values, {}, random_, part);
      drop_refused_attributes(operation_, problem);
      if (has(problem) && check_problem(operation_, problem)) return problem;
    }
    return std::nullopt;
  }

  /// Returns a variation of a problem that a choice of this variant has. Where attributes exclude
  /// each other, few random problems are valid, but neighbours of valid ones often are.
  Problem vary(const Kind& kind, const std::vector<Problem>& known, std::int64_t part) {
    Problem problem = known[uniform_below(random_, known.size())];
    problem.dtype = kind.types.in;
    problem.out_dtype = kind.types.out;
    if (!attributes_.empty() && uniform_below(random_, 2) == 0) {
      AttributeDeck& changed = attributes_[uniform_below(random_, attributes_.size())];
      problem = with_attribute(operation_, problem, *changed.attribute,
                               draw_value(changed, kind.variant));
    }
    return varied_problem(operation_, std::move(problem), {}, random_, part);
  }

  /// Returns a problem of another variant with an attribute that problems for this one were drawn
  /// with in vain, as few are valid with it.
  std::optional<Problem> of_another(const Kind& kind) const {
    std::vector<std::pair<std::string, std::string>> sought;
    for (const AttributeDeck& deck : attributes_) {
      for (const std::string& value : values_to_test(*deck.attribute, {})) {
        const auto feature = fmt::format("{} {}={}", kind.variant, deck.attribute->name, value);
        const auto wanted = wanted_.find(feature);
        if (wanted == wanted_.end() || wanted->second < patience || novelty_.has(feature)) continue;
        sought.emplace_back(deck.attribute->name, value);
      }
    }
    for (std::size_t i = known_.size(); !sought.empty() && i > 0; --i) {
      const auto has = [&](const auto& one) {
        return known_[i - 1].attribute(one.first, "") == one.second;
      };
      if (std::none_of(sought.begin(), sought.end(), has)) continue;
      Problem problem = known_[i - 1];
      problem.dtype = kind.types.in;
      problem.out_dtype = kind.types.out;
      if (check_problem(operation_, problem)) return problem;
    }
    return std::nullopt;
  }

  /// Returns whether a parameter value has uncovered features.
  bool is_open(const std::string& variant, const std::string& parameter, int value,
               const std::vector<Division>& divisions) const {
    if (!novelty_.has(fmt::format("{} {}={}", variant, parameter, value))) return true;
    return std::any_of(divisions.begin(), divisions.end(), [&](const Division& division) {
      return division.parameter == parameter && novelty_.unmet(cases(variant, division, value)) > 0;
    });
  }

  /// Returns a parameter value with uncovered features that was tried least often, or std::nullopt
  /// if all features are covered.
  std::optional<Aim> aim(const std::string& variant) {
    std::vector<Aim> rarest;
    int fewest = std::numeric_limits<int>::max();
    const Seen& seen = seen_[variant];
    auto& targets = targets_[variant];
    for (const Parameter& parameter : seen.parameters) {
      for (const int value : parameter.values) {
        Target& target = targets[{parameter.name, value}];
        if (target.asked != finds_) {
          target.asked = finds_;
          target.open = is_open(variant, parameter.name, value, seen.divisions);
        }
        if (!target.open) continue;
        if (target.aimed < fewest) rarest.clear();
        if (target.aimed > fewest) continue;
        fewest = target.aimed;
        rarest.push_back({parameter.name, value});
      }
    }
    for (const Division& division : seen.divisions) {
      if (division.parameter.empty() &&
          novelty_.unmet(cases(variant, division, division.part)) > 0) {
        // Candidates for the length of whole parts.
        rarest.push_back({"", 32 << uniform_below(random_, 7)});
      }
    }
    if (rarest.empty()) return std::nullopt;
    const Aim& chosen = rarest[uniform_below(random_, rarest.size())];
    if (!chosen.parameter.empty()) ++targets[{chosen.parameter, chosen.value}].aimed;
    return chosen;
  }

  /// Restricts the parameter to this value, if it has it.
  static void fix(Alternative& alternative, const Aim& aim) {
    for (Parameter& parameter : alternative.parameters) {
      if (parameter.name != aim.parameter) continue;
      std::erase_if(parameter.values, [&](int value) { return value != aim.value; });
    }
  }

  /// The choice with the largest gain of those that a call of find() compares.
  struct Best {
    std::optional<Candidate> choice;
    Gain gain;
  };

  /// What became of a problem: the variant may have no configuration for it.
  enum class Drawn { invalid, unsupported, compared };

  /// Draws configurations of a problem, and compares them with the best choice.
  Drawn compare(const Kind& kind, Problem problem, const std::optional<Aim>& aimed, Best& best) {
    constexpr int few = 8, many = 16;  // few take a path
    if (!check_problem(operation_, problem)) return Drawn::invalid;
    // Without an attribute that was dropped, a problem may be larger.
    if (!WorkLimit{}.allows(operation_, problem)) return Drawn::invalid;
    const Variant& variant = operation_.variant(kind.variant);
    const ProblemShape shape = operation_.shape(problem);
    Alternative alternative = variant.space(shape, device_);
    if (!is_possible(alternative)) return Drawn::unsupported;
    possible_ = true;
    seen_[kind.variant].parameters = alternative.parameters;
    if (aimed) fix(alternative, *aimed);
    if (kind.by) fix(alternative, *kind.by);
    std::vector<Alternative> alternatives;  // a list in braces would copy it
    alternatives.push_back(std::move(alternative));
    const Space space(std::move(alternatives));
    if (space.count() == 0) return Drawn::unsupported;
    const ProblemGain of_problem = novelty_.of_problem(operation_, problem, variant);
    for (int j = 0; j < (variant.paths ? many : few); ++j) {
      Candidate choice{problem, space.sample(random_)};
      const Gain gained = novelty_.of_choice(of_problem, variant, shape, choice.config, deep_);
      if (best.choice && gained <= best.gain) continue;
      const LaunchPlan plan = variant.plan(shape, device_, choice.config);
      if (launched_threads(plan) > most_threads_launched(device_)) continue;
      best = {std::move(choice), gained};
    }
    return Drawn::compared;
  }

  /// Draws several problems that support the variant, and configurations of each, and returns the
  /// choice with the largest gain. Variations of earlier problems are like those, so that they are
  /// drawn only where few random problems are valid, or the latest choices had no gain.
  std::optional<Candidate> find(const Kind& kind) {
    constexpr int tries = 600, draws = 1500, few = 100, variations = 30, vain = 20;
    const int problems = in_vain_ < patience ? 6 : 1;
    ++finds_;
    Best best;
    const auto aim_of = [&](int drawn) {
      return drawn % 2 == 0 ? aim(kind.variant) : std::nullopt;
    };
    possible_ = false;
    int found = 0;
    // Problems with many options are drawn easily, but loops are short with some, and special
    // inputs are left out.
    deep_.reset();
    if (uniform_below(random_, 3) == 0) deep_ = static_cast<std::size_t>(random_());
    const bool usual = uniform_below(random_, 3) == 0;
    // Rare values are drawn until they are valid, which leaves few other problems where few are.
    const bool has_paths = operation_.variant(kind.variant).paths != nullptr;
    const bool sought = has_paths && uniform_below(random_, 2) == 0;
    if (auto problem = of_another(kind)) {
      if (compare(kind, *std::move(problem), std::nullopt, best) == Drawn::compared) ++found;
    }
    for (int i = 0, drawn = 0; i < tries && drawn < draws; ++drawn) {
      if (found == problems) break;
      const bool rarely_valid = drawn >= few && 50 * i < drawn;
      const auto aimed = aim_of(drawn);
      const std::int64_t part = aimed ? aimed->value : 0;
      auto rare = sought && drawn % 3 == 1 ? draw_rare(kind, part) : std::nullopt;
      Problem problem =
          rare ? *std::move(rare)
               : random_problem(operation_, kind.types, draw_attributes(kind.variant, usual), {},
                                random_, part);
      if (rarely_valid || drawn % 4 == 0 || (found == 0 && drawn > draws / 2))
        drop_refused_attributes(operation_, problem);
      if (has_paths && drawn % 2 == 0) make_whole(problem);
      const Drawn result = compare(kind, std::move(problem), aimed, best);
      if (result != Drawn::invalid) ++i;
      if (result == Drawn::compared) ++found;
    }
    if (in_vain_ >= vain) found = 0;
    const std::vector<Problem>& known = seen_[kind.variant].problems;
    for (int drawn = 0; !known.empty() && drawn < variations && found < problems; ++drawn) {
      const auto aimed = aim_of(drawn);
      Problem problem = vary(kind, known, aimed ? aimed->value : 0);
      if (compare(kind, std::move(problem), aimed, best) == Drawn::compared) ++found;
    }
    if (best.choice) keep(kind, best);
    return std::move(best.choice);
  }

  /// Makes rows packed and extents multiples of 8: many paths are for whole vectors.
  void make_whole(Problem& problem) const {
    for (const Attribute& attribute : operation_.attributes) {
      if (attribute.packed == nullptr) continue;
      std::erase_if(problem.attributes,
                    [&](const auto& one) { return one.first == attribute.name; });
    }
    for (auto& [name, extent] : problem.dims) {
      if (extent > 8) extent = extent / 8 * 8;
    }
  }

  void keep(const Kind& kind, const Best& best) {
    const auto& [problem, config] = *best.choice;
    Seen& seen = seen_[kind.variant];
    in_vain_ = best.gain.features > 0 ? 0 : in_vain_ + 1;
    if (best.gain.features > 0) {
      seen.problems.push_back(problem);
      known_.push_back(problem);
    }
    rare_.add(kind.variant, problem);
    novelty_.add(operation_, *best.choice);
    seen.divisions = operation_.variant(kind.variant).divisions(operation_.shape(problem), config);
  }

  static constexpr int patience = 100;

  const Operation& operation_;
  const DeviceInfo& device_;
  std::mt19937_64 random_;
  Deck<Kind> kinds_;
  RareValues rare_;
  std::vector<Kind> missed_;  ///< each time that no problem was found for one
  std::vector<AttributeDeck> attributes_;
  Novelty novelty_;
  std::unordered_map<Feature, int> wanted_;  ///< how often an uncovered attribute was drawn
  std::vector<Problem> known_;       ///< of all variants, with features that no choice before had
  int in_vain_ = 0;                  ///< choices since one covered a new feature
  bool possible_ = false;            ///< whether the last find() met a problem of the variant
  std::optional<std::size_t> deep_;  ///< if the present find() prefers many parts, of a division
  std::uint64_t finds_ = 0;          ///< calls of find(), in which met_ stays the same
  std::unordered_map<std::string, std::map<std::pair<std::string, int>, Target>>
      targets_;                                 ///< by variant: values of parameters
  std::unordered_map<std::string, Seen> seen_;  ///< by variant
};

}  // namespace

std::function<std::optional<Candidate>()> candidate_source(const Operation& operation,
                                                           const DeviceInfo& device,
                                                           std::string_view variant,
                                                           std::uint64_t seed) {
  const auto dealer = std::make_shared<Dealer>(operation, device, variant, seed);
  return [dealer] { return dealer->deal(); };
}

std::vector<Candidate> random_candidates(const Operation& operation, const DeviceInfo& device,
                                         std::string_view variant, std::size_t count,
                                         std::uint64_t seed) {
  const auto next = candidate_source(operation, device, variant, seed);
  std::vector<Candidate> choices;
  while (choices.size() < count) {
    auto choice = next();
    if (!choice) break;
    choices.push_back(*std::move(choice));
  }
  return choices;
}

}  // namespace greta::kernels
