#include "kernels/sampling/novelty.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "kernels/model/random.hpp"

namespace greta::kernels {
namespace {

constexpr std::size_t rare = 3;      // few problems and divisions have what names no parameter
constexpr std::size_t of_path = 12;  // few configurations of few problems take a path

/// Calls use(number) for each pair of parameter values. Numbers of different pairs differ, unless
/// two hashes of 64 bits are equal.
template <typename Use>
void each_pair(const Config& config, Use use) {
  const std::hash<std::string_view> hash;
  std::vector<std::uint64_t> numbers;
  for (const auto& [name, value] : config.values) {
    const std::uint64_t number = 31 * hash(config.variant) + hash(name);
    numbers.push_back(mix64(number + static_cast<std::uint64_t>(value)));
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i)
      use(mix64(3 * numbers.back() + numbers[i]));
  }
}

/// Returns numbers of a problem's attributes that differ from their defaults.
std::vector<std::uint64_t> options_of(const Operation& operation, const Problem& problem) {
  const std::hash<std::string_view> hash;
  std::vector<std::uint64_t> list;
  for (const Attribute& attribute : operation.attributes) {
    const std::string value = problem.attribute(attribute.name, attribute.fallback);
    if (value == attribute.fallback) continue;
    const bool apart = attribute.packed != nullptr;  // any distance of its rows
    list.push_back(mix64(31 * hash(attribute.name) + (apart ? 0 : hash(value))));
  }
  return list;
}

/// Calls use(number) for each pair of options (Novelty::of_choice) that is not of parameters alone.
template <typename Use>
void each_pair_of_options(std::vector<std::uint64_t> options, const Variant& variant,
                          const ProblemShape& shape, const Config& config, Use use) {
  const std::hash<std::string_view> hash;
  const std::uint64_t of_variant = hash(variant.name);
  if (variant.paths) {
    for (const std::string& path : variant.paths(shape, config)) options.push_back(hash(path));
  }
  const std::size_t others = options.size();
  for (const auto& [name, value] : config.values) {
    if (value != 1 && value != 2) continue;
    options.push_back(mix64(hash(name) + static_cast<std::uint64_t>(value)));
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (std::size_t j = 0; j < std::min(i, others); ++j) {
      use(mix64(of_variant + 3 * options[i] + options[j]));
    }
  }
}

/// Calls use(number) for each division's number of parts, with each parameter that is 0, 1 or 2.
template <typename Use>
void each_depth(const Variant& variant, const ProblemShape& shape, const Config& config, Use use) {
  const std::hash<std::string_view> hash;
  for (const Division& division : variant.divisions(shape, config)) {
    const int size = log2_of_parts(division);
    const std::uint64_t depth =
        mix64(31 * hash(config.variant) + hash(division.name) + static_cast<std::uint64_t>(size));
    for (const auto& [name, value] : config.values) {
      if (value < 0 || value > 2) continue;
      use(mix64(3 * depth + hash(name) + static_cast<std::uint64_t>(value)));
    }
  }
}

/// Calls use(number) for the remainder class of each extent.
template <typename Use>
void each_remainder(const Problem& problem, std::string_view variant, Use use) {
  const std::uint64_t first = std::hash<std::string_view>{}(variant);
  for (std::size_t i = 0; i < problem.dims.size(); ++i) {
    const auto one = static_cast<std::uint64_t>(remainder_class(problem.dims[i].second));
    use(mix64(mix64(first + i) + one));
  }
}

}  // namespace

std::size_t Novelty::unmet(const std::vector<Feature>& features, std::size_t of_rare) const {
  std::size_t count = 0;
  for (const Feature& feature : features) {
    if (has(feature)) continue;
    const bool path = feature.find(" path ") != Feature::npos;
    count += path ? of_path : feature.find('=') == Feature::npos ? of_rare : 1;
  }
  return count;
}

ProblemGain Novelty::of_problem(const Operation& operation, const Problem& problem,
                                const Variant& variant) const {
  ProblemGain gain{rare * unmet(problem_features(operation, problem, variant.name)), 0,
                   options_of(operation, problem)};
  each_remainder(problem, variant.name, [&](std::uint64_t one) {
    gain.remainders += met_remainders_.contains(one) ? 0 : 1;
  });
  return gain;
}

Gain Novelty::of_choice(const ProblemGain& of_problem, const Variant& variant,
                        const ProblemShape& shape, const Config& config,
                        std::optional<std::size_t> deep) const {
  constexpr std::size_t of_feature = 4, of_parts = 32;
  Gain gain;
  gain.features = of_problem.features + unmet(config_features(variant, shape, config), rare);
  gain.weight = of_feature * gain.features + of_problem.remainders;
  each_depth(variant, shape, config,
             [&](std::uint64_t depth) { gain.weight += met_depths_.contains(depth) ? 0 : 1; });
  each_pair_of_options(of_problem.options, variant, shape, config, [&](std::uint64_t pair) {
    gain.weight += met_options_.contains(pair) ? 0 : 1;
  });
  if (const auto list = variant.divisions(shape, config); deep && !list.empty()) {
    gain.weight += of_parts * static_cast<std::size_t>(log2_of_parts(list[*deep % list.size()]));
  }
  each_pair(config, [&](std::uint64_t pair) { gain.pairs += met_pairs_.contains(pair) ? 0 : 1; });
  return gain;
}

void Novelty::add(const Operation& operation, const Candidate& choice) {
  const auto& [problem, config] = choice;
  for (Feature& feature : features(operation, choice)) met_.insert(std::move(feature));
  each_pair(config, [this](std::uint64_t pair) { met_pairs_.insert(pair); });
  const Variant& variant = operation.variant(config.variant);
  const ProblemShape shape = operation.shape(problem);
  each_depth(variant, shape, config, [this](std::uint64_t depth) { met_depths_.insert(depth); });
  each_pair_of_options(options_of(operation, problem), variant, shape, config,
                       [this](std::uint64_t pair) { met_options_.insert(pair); });
  each_remainder(problem, config.variant,
                 [this](std::uint64_t one) { met_remainders_.insert(one); });
}

}  // namespace greta::kernels
