#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/expression.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels {

/// A tunable parameter and its values, in an order in which neighbours resemble each other.
struct Parameter {
  std::string name;
  std::vector<int> values;
};

/// What a configuration must meet: an expression or, where none can say it, a function.
class Condition {
 public:
  // Implicit, as they are members' values.
  Condition(Expression expression);                                      // NOLINT
  Condition(std::integral auto truth) : Condition(Expression(truth)) {}  // NOLINT
  /// `parameters`: the only ones that the function reads, and may see.
  Condition(std::vector<std::string> parameters, std::function<bool(const Config&)> function);

  const std::vector<std::string>& parameters() const { return parameters_; }
  /// `values`: of parameters(), in this order; `variant`: the configuration's.
  bool holds(const std::string& variant, std::span<const std::int64_t> values) const;
  bool holds(const Config& config) const;
  /// Nothing where it is a function.
  const std::optional<Expression>& expression() const { return expression_; }

 private:
  std::vector<std::string> parameters_;
  std::optional<Expression> expression_;
  std::function<bool(const Config&)> function_;
};

/// A rule that a configuration must meet.
struct Constraint {
  std::string name;    ///< "shared_memory"
  std::string reason;  ///< told to the user: "the tiles need more than 48 KiB"
  Condition condition;
};

/// The parameters and constraints of one variant of a template.
struct Alternative {
  std::string variant;
  std::vector<Parameter> parameters;
  std::vector<Constraint> constraints;
};

/// A configuration of a space, as positions: the form in which a search handles it.
struct Choice {
  std::uint32_t variant = 0;          ///< position among the alternatives
  std::vector<std::uint16_t> values;  ///< of each parameter's value, in declared order

  auto operator<=>(const Choice&) const = default;
};

/// The first constraint that a configuration breaks, as "name: reason"; nothing when it is valid.
/// A value that is not in its parameter's list breaks "domain". Needs no Space, whose tables cost
/// milliseconds.
std::optional<std::string> rejects(const std::vector<Alternative>& alternatives,
                                   const Config& config);

/// Of alternatives without any valid configuration: for each the constraints but for one of which
/// it would have some, as "variant: name: reason, or name: reason"; of those that break more,
/// nothing.
std::string why_empty(const std::vector<Alternative>& alternatives);

/// The search space of one problem on one device: the union of its variants' spaces.
///
/// Valid configurations are numbered 0 … count()-1. Counting and unranking walk a table of partial
/// assignments that is memoised on the parameters which later constraints still read, so neither
/// enumerates the Cartesian product; memory grows with the constraints' coupling, not with count().
/// Source of the idea: chains of trees, Rasch et al., "Efficient Auto-Tuning of Parallel Programs
/// with Interdependent Tuning Parameters via ATF", TACO 2021.
class Space {
 public:
  /// Throws Error when names repeat, or a constraint reads a parameter that its variant lacks.
  explicit Space(std::vector<Alternative> alternatives);
  Space(Space&&) noexcept;
  Space& operator=(Space&&) noexcept;
  ~Space();

  const std::vector<Alternative>& alternatives() const;
  /// Size of the Cartesian product of all variants, before constraints; saturates at 2^63.
  std::uint64_t cartesian_size() const;
  std::uint64_t count() const;
  std::uint64_t count(std::string_view variant) const;
  /// How many of them one alternative has, by its position.
  std::uint64_t count_at(std::uint32_t variant) const;
  /// The valid configuration of this number.
  Choice choice(std::uint64_t index) const;
  Config at(std::uint64_t index) const { return config(choice(index)); }
  /// The inverse; nothing when the configuration is not valid.
  std::optional<std::uint64_t> index(const Choice& choice) const;
  std::optional<std::uint64_t> index(const Config& config) const;
  /// Uniform over all valid configurations.
  Config sample(std::mt19937_64& random) const;
  /// Uniform over the valid configurations of one variant, which must have some.
  Config sample(std::string_view variant, std::mt19937_64& random) const;
  Choice sample_at(std::uint32_t variant, std::mt19937_64& random) const;
  Config config(const Choice& choice) const;
  /// Nothing for a configuration outside the domain.
  std::optional<Choice> choice(const Config& config) const;
  /// The parameters of one variant with those of their values that a valid configuration has.
  std::vector<Parameter> used(std::string_view variant) const;
  /// Valid configurations that differ in one parameter; where `adjacent`, by one step in that
  /// parameter's list, else by any step.
  std::vector<Choice> neighbours(Choice choice, bool adjacent) const;

  /// As kernels::rejects.
  std::optional<std::string> rejects(const Config& config) const;
  bool valid(const Config& config) const { return !rejects(config); }
  /// Reads `variant NAME=VALUE …`; every parameter must be there once, in any order.
  Result<Config> parse(std::string_view text) const;
  /// How many configurations of the Cartesian product each constraint rejects first, estimated
  /// from `samples` uniform draws, as fractions; for reports on why a space is small.
  std::vector<std::pair<std::string, double>> rejection_rates(std::uint64_t seed,
                                                              int samples) const;
  /// Of the first constraint of this name; empty where there is none.
  std::string reason_of(std::string_view constraint) const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace greta::kernels
