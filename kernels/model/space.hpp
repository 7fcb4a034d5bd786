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

/// A tunable parameter and its values, ordered so that adjacent values behave similarly.
struct Parameter {
  std::string name;
  std::vector<int> values;
};

/// The condition of a constraint: an expression, or a function where no expression can state it.
class Condition {
 public:
  // Implicit conversions keep aggregate initialisers of Constraint short.
  Condition(Expression expression);                                      // NOLINT
  Condition(std::integral auto truth) : Condition(Expression(truth)) {}  // NOLINT
  /// `parameters` lists the parameters that the function reads; it has access to no others. Where
  /// it can't answer, it throws Error: a Space can't be made, and rejects() gives the message.
  Condition(std::vector<std::string> parameters, std::function<bool(const Config&)> function);

  const std::vector<std::string>& parameters() const { return parameters_; }
  bool holds(const Config& config) const;
  /// Returns std::nullopt if the condition is a function.
  const std::optional<Expression>& expression() const { return expression_; }

 private:
  std::vector<std::string> parameters_;
  std::optional<Expression> expression_;
  std::function<bool(const Config&)> function_;
};

/// A rule that a configuration must satisfy.
struct Constraint {
  std::string name;    ///< e.g. "shared_memory"
  std::string reason;  ///< for the user, e.g. "the tiles need more than 48 KiB"
  Condition condition;
  /// Returns the reason with the values of a configuration that violates it. Empty: `reason`.
  std::function<std::string(const Config&)> explain{};
};

/// The parameters and constraints of one variant of a template.
struct Alternative {
  std::string variant;
  std::vector<Parameter> parameters;
  std::vector<Constraint> constraints;
  std::shared_ptr<const ValueWords> words{};  ///< for Config::words; null: there are none
};

/// Returns the value of a parameter that a text names: a number, or the number of one of its words.
std::optional<int> number_of(const Alternative& alternative, const std::string& parameter,
                             std::string_view text);

/// A configuration of a space as indices. Search strategies use this form.
struct Choice {
  std::uint32_t variant = 0;          ///< index into the alternatives
  std::vector<std::uint16_t> values;  ///< index of each parameter's value, in declared order

  auto operator<=>(const Choice&) const = default;
};

/// Returns the first constraint that a configuration violates, as "name: reason", or std::nullopt
/// if it is valid. A value that is not in its parameter's list violates "domain". Needs no Space,
/// whose construction takes milliseconds.
std::optional<std::string> rejects(std::span<const Alternative> alternatives, const Config& config);
std::optional<std::string> rejects(const Alternative& alternative, const Config& config);

/// Explains why alternatives have no valid configuration: "variant: name: reason, or name: reason"
/// of constraints whose removal alone would make one valid; or else "… and name: reason" of those
/// that leave none beside the constraints before them.
std::string why_empty(const std::vector<Alternative>& alternatives);

/// The search space of one problem on one device: the union of its variants' spaces.
///
/// Valid configurations are numbered from 0 to count() - 1. Counting and unranking traverse a table
/// of partial assignments, which is memoised on the parameters that later constraints still read.
/// Neither enumerates the Cartesian product. Memory grows with the coupling of the constraints, not
/// with count().
/// Source of the idea: chains of trees, Rasch et al., "Efficient Auto-Tuning of Parallel Programs
/// with Interdependent Tuning Parameters via ATF", TACO 2021.
class Space {
 public:
  /// Throws Error if names repeat or if a constraint reads a parameter that its variant lacks.
  explicit Space(std::vector<Alternative> alternatives);
  /// The indices of each parameter's value, in declared order.
  using Positions = std::vector<std::uint16_t>;
  /// Returns a space whose valid configurations are these, a list for each alternative, in any
  /// order. The alternatives' constraints must accept the same configurations; only rejects() asks
  /// them.
  static Space listed(std::vector<Alternative> alternatives,
                      std::vector<std::vector<Positions>> valid);
  Space(Space&&) noexcept;
  Space& operator=(Space&&) noexcept;
  ~Space();

  const std::vector<Alternative>& alternatives() const;
  /// Returns the size of the Cartesian product of all variants, before constraints. Saturates at
  /// 2^63.
  std::uint64_t cartesian_size() const;
  std::uint64_t count() const;
  std::uint64_t count(std::string_view variant) const;
  /// Returns the number of valid configurations of one alternative, given by index.
  std::uint64_t count_at(std::uint32_t variant) const;
  /// Returns the valid configuration with this number.
  Choice choice(std::uint64_t index) const;
  Config at(std::uint64_t index) const { return config(choice(index)); }
  /// The inverse of choice(). Returns std::nullopt if the configuration is not valid.
  std::optional<std::uint64_t> index(const Choice& choice) const;
  std::optional<std::uint64_t> index(const Config& config) const;
  /// Draws uniformly from all valid configurations.
  Config sample(std::mt19937_64& random) const;
  /// Draws uniformly from the valid configurations of one variant, which must have at least one.
  Config sample(std::string_view variant, std::mt19937_64& random) const;
  Choice sample_at(std::uint32_t variant, std::mt19937_64& random) const;
  Config config(const Choice& choice) const;
  /// Returns std::nullopt for a configuration outside the domain.
  std::optional<Choice> choice(const Config& config) const;
  /// Returns the parameters of one variant, each with only those values that occur in a valid
  /// configuration.
  std::vector<Parameter> used(std::string_view variant) const;
  /// Returns the valid configurations that differ from `choice` in one parameter: by one position
  /// in that parameter's list if `adjacent`, else by any number of positions.
  std::vector<Choice> neighbours(Choice choice, bool adjacent) const;

  /// Like kernels::rejects.
  std::optional<std::string> rejects(const Config& config) const;
  bool valid(const Config& config) const { return !rejects(config); }
  /// Parses `variant NAME=VALUE …`. Every parameter must occur exactly once, in any order.
  Result<Config> parse(std::string_view text) const;
  /// Estimates, from `samples` uniform draws of the Cartesian product, the fraction of
  /// configurations that each constraint is the first to reject. Used in reports on why a space is
  /// small.
  std::vector<std::pair<std::string, double>> rejection_rates(std::uint64_t seed,
                                                              int samples) const;
  /// Returns the reason of the first constraint of this name, or an empty string.
  std::string reason_of(std::string_view constraint) const;

 private:
  struct Tables;
  explicit Space(std::unique_ptr<Tables> tables);

  std::unique_ptr<Tables> tables_;
};

/// Returns all combinations of the parameters' values as configurations of the variant.
std::vector<Config> combinations(std::string variant, std::vector<Parameter> parameters);

}  // namespace greta::kernels
