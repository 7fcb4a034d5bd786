#include "kernels/model/space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "kernels/model/first_valid.hpp"
#include "kernels/model/random.hpp"
#include "kernels/model/space_table.hpp"
#include "runtime/device/text/spelling.hpp"

namespace greta::kernels {
namespace {

/// Returns the index of a variant, or the number of alternatives if there is no variant of that
/// name.
std::size_t find_variant(std::span<const Alternative> alternatives, std::string_view variant) {
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [&](const auto& a) { return a.variant == variant; });
  return static_cast<std::size_t>(found - alternatives.begin());
}

std::string no_variant(std::span<const Alternative> alternatives, std::string_view variant) {
  std::vector<std::string_view> names;
  for (const Alternative& alternative : alternatives) names.push_back(alternative.variant);
  return fmt::format("variant \"{}\" is not one of {}", variant, fmt::join(names, ", "));
}

}  // namespace

Condition::Condition(Expression expression)
    : parameters_(expression.parameters()), expression_(std::move(expression)) {}

Condition::Condition(std::vector<std::string> parameters,
                     std::function<bool(const Config&)> function)
    : parameters_(std::move(parameters)), function_(std::move(function)) {}

bool Condition::holds(const Config& config) const {
  if (!expression_) return function_(config);
  std::vector<std::int64_t> values;
  values.reserve(parameters_.size());
  for (const std::string& name : parameters_) values.push_back(config[name]);
  return expression_->holds(values);
}

struct Space::Tables {
  explicit Tables(std::vector<Alternative> all)
      : alternatives(std::move(all)), tables_(alternatives.size()) {}

  /// Takes the tables of the first alternatives instead of building them from constraints.
  Tables(std::vector<Alternative> all, std::vector<SpaceTable> known) : Tables(std::move(all)) {
    for (std::size_t i = 0; i < known.size(); ++i) {
      std::call_once(tables_[i].once, [&] { tables_[i].table.emplace(std::move(known[i])); });
    }
  }

  const std::vector<Alternative> alternatives;

  std::size_t find(std::string_view variant) const { return find_variant(alternatives, variant); }

  std::size_t need(std::string_view variant) const {
    const std::size_t position = find(variant);
    if (position == alternatives.size()) throw Error(no_variant(alternatives, variant));
    return position;
  }

  /// Returns the table of an alternative, which the first call builds.
  const SpaceTable& at(std::size_t position) {
    Built& built = tables_.at(position);
    std::call_once(built.once, [&] { built.table.emplace(alternatives[position]); });
    return *built.table;
  }

  /// Returns the number of valid configurations of the alternatives before each, and of all.
  const std::vector<std::uint64_t>& before() {
    std::call_once(summed_, [&] {
      std::vector<std::uint64_t> before{0};
      for (std::size_t i = 0; i < tables_.size(); ++i) {
        before.push_back(before.back() + at(i).count());
      }
      before_ = std::move(before);
    });
    return before_;
  }

 private:
  struct Built {
    std::once_flag once;
    std::optional<SpaceTable> table;
  };

  std::vector<Built> tables_;  ///< one per alternative
  std::once_flag summed_;
  std::vector<std::uint64_t> before_;
};

namespace {

/// Returns why the value is not in the parameter's list, or std::nullopt if it is.
std::optional<std::string> domain_error(const Parameter& parameter, int value) {
  const auto& values = parameter.values;
  if (std::find(values.begin(), values.end(), value) != values.end()) return std::nullopt;
  return fmt::format("{}={} is not one of {}", parameter.name, value, fmt::join(values, ", "));
}

/// Returns why the configuration is not in the Cartesian product, or std::nullopt if it is.
std::optional<std::string> domain_error(const Alternative& alternative, const Config& config) {
  const auto& parameters = alternative.parameters;
  if (!std::equal(parameters.begin(), parameters.end(), config.values.begin(), config.values.end(),
                  [](const Parameter& p, const auto& value) { return p.name == value.first; })) {
    std::vector<std::string_view> names;
    for (const Parameter& parameter : parameters) names.push_back(parameter.name);
    return fmt::format("the parameters of {} are {}", alternative.variant, fmt::join(names, " "));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (auto error = domain_error(parameters[i], config.values[i].second)) return error;
  }
  return std::nullopt;
}

/// A constraint that a configuration violates, and why.
struct Broken {
  const Constraint* constraint;
  std::string why;
};

std::optional<Broken> first_broken(const Alternative& alternative, const Config& config) {
  for (const Constraint& constraint : alternative.constraints) {
    try {
      if (constraint.condition.holds(config)) continue;
    } catch (const Error& error) {
      return Broken{&constraint, error.what()};
    }
    return Broken{&constraint, constraint.explain ? constraint.explain(config) : constraint.reason};
  }
  return std::nullopt;
}

std::uint64_t cartesian_size_of(const Alternative& alternative) {
  constexpr std::uint64_t most = std::uint64_t{1} << 63;
  std::uint64_t product = 1;
  for (const Parameter& parameter : alternative.parameters) {
    if (parameter.values.empty()) return 0;
    if (__builtin_mul_overflow(product, parameter.values.size(), &product)) product = most;
    product = std::min(product, most);
  }
  return product;
}

void check_all_names(const std::vector<Alternative>& alternatives) {
  std::set<std::string> variants;
  for (const Alternative& alternative : alternatives) {
    const std::string& variant = alternative.variant;
    if (!variants.insert(variant).second) throw Error("variant " + variant + " occurs twice");
    check_names(alternative);
  }
}

}  // namespace

Space::Space(std::vector<Alternative> alternatives) {
  check_all_names(alternatives);
  tables_ = std::make_unique<Tables>(std::move(alternatives));
}

Space::Space(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}

Space Space::listed(std::vector<Alternative> alternatives,
                    std::vector<std::vector<Positions>> valid) {
  check_all_names(alternatives);
  std::vector<SpaceTable> tables;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    tables.emplace_back(alternatives[i].parameters.size(), std::move(valid.at(i)));
  }
  return Space(std::make_unique<Tables>(std::move(alternatives), std::move(tables)));
}

Space::Space(Space&&) noexcept = default;
Space& Space::operator=(Space&&) noexcept = default;
Space::~Space() = default;

const std::vector<Alternative>& Space::alternatives() const {
  return tables_->alternatives;
}

std::uint64_t Space::cartesian_size() const {
  constexpr std::uint64_t most = std::uint64_t{1} << 63;
  std::uint64_t sum = 0;
  for (const Alternative& alternative : alternatives()) {
    sum += std::min(most - sum, cartesian_size_of(alternative));
  }
  return sum;
}

std::uint64_t Space::count() const {
  return tables_->before().back();
}

std::uint64_t Space::count(std::string_view variant) const {
  return tables_->at(tables_->need(variant)).count();
}

std::uint64_t Space::count_at(std::uint32_t variant) const {
  return tables_->at(variant).count();
}

Choice Space::choice(std::uint64_t index) const {
  if (index >= count()) {
    throw Error(fmt::format("configuration {} of a space of {}", index, count()));
  }
  const auto& before = tables_->before();
  const auto after = std::upper_bound(before.begin(), before.end(), index);
  const auto position = static_cast<std::size_t>(after - before.begin()) - 1;
  return {static_cast<std::uint32_t>(position), tables_->at(position).at(index - before[position])};
}

std::optional<std::uint64_t> Space::index(const Choice& choice) const {
  const auto within = tables_->at(choice.variant).index(choice.values);
  if (!within) return std::nullopt;
  return tables_->before()[choice.variant] + *within;
}

std::optional<std::uint64_t> Space::index(const Config& config) const {
  const auto positions = choice(config);
  return positions ? index(*positions) : std::nullopt;
}

Config Space::config(const Choice& choice) const {
  return config_of(alternatives().at(choice.variant), choice.values);
}

std::optional<Choice> Space::choice(const Config& config) const {
  const std::size_t position = tables_->find(config.variant);
  if (position == alternatives().size()) return std::nullopt;
  const Alternative& alternative = alternatives()[position];
  if (domain_error(alternative, config)) return std::nullopt;
  Choice choice{static_cast<std::uint32_t>(position), {}};
  choice.values.reserve(alternative.parameters.size());
  for (std::size_t i = 0; i < alternative.parameters.size(); ++i) {
    const auto& values = alternative.parameters[i].values;
    const auto found = std::find(values.begin(), values.end(), config.values[i].second);
    choice.values.push_back(static_cast<std::uint16_t>(found - values.begin()));
  }
  return choice;
}

Config Space::sample(std::mt19937_64& random) const {
  if (count() == 0) throw Error("a sample of an empty space");
  return at(uniform_below(random, count()));
}

Config Space::sample(std::string_view variant, std::mt19937_64& random) const {
  const std::size_t position = tables_->need(variant);
  if (tables_->at(position).count() == 0) {
    throw Error(fmt::format("variant {} is empty", variant));
  }
  return config(sample_at(static_cast<std::uint32_t>(position), random));
}

Choice Space::sample_at(std::uint32_t variant, std::mt19937_64& random) const {
  const SpaceTable& table = tables_->at(variant);
  return {variant, table.at(uniform_below(random, table.count()))};
}

std::vector<Parameter> Space::used(std::string_view variant) const {
  const std::size_t position = tables_->need(variant);
  std::vector<Parameter> parameters = alternatives()[position].parameters;
  const auto used = tables_->at(position).used();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<int> values;
    for (const std::uint32_t choice : used[i]) values.push_back(parameters[i].values[choice]);
    parameters[i].values = std::move(values);
  }
  return parameters;
}

std::vector<Choice> Space::neighbours(Choice choice, bool adjacent) const {
  const Alternative& alternative = alternatives().at(choice.variant);
  const SpaceTable& table = tables_->at(choice.variant);
  std::vector<Choice> found;
  for (std::size_t i = 0; i < choice.values.size(); ++i) {
    const std::uint16_t here = choice.values[i];
    for (std::uint16_t there = 0; there < alternative.parameters[i].values.size(); ++there) {
      if (there == here || (adjacent && there + 1 != here && there != here + 1)) continue;
      choice.values[i] = there;
      if (table.index(choice.values)) found.push_back(choice);
    }
    choice.values[i] = here;
  }
  return found;
}

std::optional<std::string> rejects(std::span<const Alternative> alternatives,
                                   const Config& config) {
  const std::size_t position = find_variant(alternatives, config.variant);
  if (position == alternatives.size()) {
    return "domain: " + no_variant(alternatives, config.variant);
  }
  const Alternative& alternative = alternatives[position];
  if (const auto error = domain_error(alternative, config)) return "domain: " + *error;
  const auto broken = first_broken(alternative, config);
  if (!broken) return std::nullopt;
  return fmt::format("{}: {}", broken->constraint->name, broken->why);
}

std::optional<std::string> rejects(const Alternative& alternative, const Config& config) {
  return rejects(std::span(&alternative, 1), config);
}

std::optional<std::string> Space::rejects(const Config& config) const {
  return kernels::rejects(alternatives(), config);
}

std::optional<int> number_of(const Alternative& alternative, const std::string& parameter,
                             std::string_view text) {
  if (alternative.words != nullptr) {
    if (const auto known = alternative.words->find(parameter); known != alternative.words->end()) {
      const auto word = std::find(known->second.begin(), known->second.end(), text);
      if (word != known->second.end()) return static_cast<int>(word - known->second.begin());
    }
  }
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

Result<Config> Space::parse(std::string_view text) const {
  const auto fail = [&](std::string_view why) {
    return Failure{Status::constraints, fmt::format("configuration \"{}\": {}", text, why), {}};
  };
  std::istringstream words{std::string(text)};
  Config config;
  words >> config.variant;
  const std::size_t position = tables_->find(config.variant);
  if (position == alternatives().size()) return fail(no_variant(alternatives(), config.variant));
  config.words = alternatives()[position].words;
  const auto& parameters = alternatives()[position].parameters;
  std::vector<std::optional<int>> values(parameters.size());
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& one) {
      return one.name == std::string_view(word).substr(0, equals);
    });
    if (found == parameters.end()) return fail(fmt::format("\"{}\" names no parameter", word));
    auto& value = values[static_cast<std::size_t>(found - parameters.begin())];
    if (value) return fail(found->name + " is given twice");
    const std::string_view given = std::string_view(word).substr(std::min(equals + 1, word.size()));
    const auto read = number_of(alternatives()[position], found->name, given);
    if (!read) {
      if (const ValueWords* const known = config.words.get(); known != nullptr) {
        if (const auto named = known->find(found->name); named != known->end())
          return fail(fmt::format("{}: {}", found->name, must_be_one_of(given, named->second)));
      }
      return fail(fmt::format("\"{}\" has no integer value", word));
    }
    const int number = *read;
    if (const auto why = domain_error(*found, number)) return fail("domain: " + *why);
    value = number;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!values[i]) return fail(parameters[i].name + " is missing");
    config.values.emplace_back(parameters[i].name, *values[i]);
  }
  if (const auto why = rejects(config)) return fail(*why);
  return config;
}

std::vector<std::pair<std::string, double>> Space::rejection_rates(std::uint64_t seed,
                                                                   int samples) const {
  std::vector<std::pair<std::string, double>> rates;
  const auto rate_of = [&](const std::string& name) -> double& {
    const auto found = std::find_if(rates.begin(), rates.end(),
                                    [&](const auto& rate) { return rate.first == name; });
    return found != rates.end() ? found->second : rates.emplace_back(name, 0.0).second;
  };
  std::vector<std::uint64_t> sizes;
  for (const Alternative& alternative : alternatives()) {
    sizes.push_back(cartesian_size_of(alternative));
    for (const Constraint& constraint : alternative.constraints) rate_of(constraint.name);
  }
  if (cartesian_size() == 0) return rates;
  std::mt19937_64 random(seed);
  for (int i = 0; i < samples; ++i) {
    std::size_t position = 0;
    for (std::uint64_t draw = uniform_below(random, cartesian_size());
         position + 1 < sizes.size() && draw >= sizes[position]; ++position) {
      draw -= sizes[position];
    }
    const auto& parameters = alternatives()[position].parameters;
    Choice drawn{static_cast<std::uint32_t>(position), {}};
    for (const Parameter& parameter : parameters) {
      drawn.values.push_back(
          static_cast<std::uint16_t>(uniform_below(random, parameter.values.size())));
    }
    const auto broken = first_broken(alternatives()[position], config(drawn));
    if (broken) rate_of(broken->constraint->name) += 1.0 / samples;
  }
  return rates;
}

std::string Space::reason_of(std::string_view constraint) const {
  for (const Alternative& alternative : alternatives()) {
    for (const Constraint& one : alternative.constraints) {
      if (one.name == constraint) return one.reason;
    }
  }
  return {};
}

std::vector<Config> combinations(std::string variant, std::vector<Parameter> parameters) {
  const Space space({{std::move(variant), std::move(parameters), {}}});
  std::vector<Config> list;
  for (std::uint64_t i = 0; i < space.count(); ++i) list.push_back(space.at(i));
  return list;
}

}  // namespace greta::kernels
