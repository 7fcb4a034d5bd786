#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::kernels {

/// An integer expression (signed, 64 bits) over the parameters of a configuration. Constraints are
/// built from expressions. In C++ they are written with operators and the object `p`: `p["BM"] /
/// p["TM"] <= 32`. text() and parse() convert from and to the text form.
///
/// Operators in order of decreasing precedence: `not`, unary `-`; `*`, `/` (truncating), `%`; `+`,
/// `-`; `<`, `<=`, `>`, `>=`, `==`, `!=`; `and`; `or`; `c ? a : b`. Functions: min(a, b), max(a,
/// b), ceil_div(a, b). True is 1 and false is 0. parse() also accepts `//`, `&&`, `||`, `!` and
/// chained comparisons, as in Python.
///
/// A division by zero or an overflow makes the value undefined. `and` is still defined if one
/// operand is 0, and `or` if one operand is nonzero.
class Expression {
 public:
  Expression(std::integral auto value)  // NOLINT(google-explicit-constructor): 2 * p["BM"]
      : steps_{{Step::constant, static_cast<std::int64_t>(value)}} {}

  static Expression parameter(std::string name);
  /// Fails with `invalid_argument` and the position of the error.
  static Result<Expression> parse(std::string_view text);
  std::string text() const;

  /// Returns the parameters that the expression reads, each once, in order of appearance.
  const std::vector<std::string>& parameters() const { return parameters_; }
  /// Evaluates the expression; std::nullopt if undefined. `values` are those of parameters(), in
  /// the same order.
  std::optional<std::int64_t> value(std::span<const std::int64_t> values) const;
  /// Returns whether the value is defined and nonzero.
  bool holds(std::span<const std::int64_t> values) const { return value(values).value_or(0) != 0; }

  friend Expression operator+(const Expression& a, const Expression& b);
  friend Expression operator-(const Expression& a, const Expression& b);
  friend Expression operator-(const Expression& a);
  friend Expression operator*(const Expression& a, const Expression& b);
  friend Expression operator/(const Expression& a, const Expression& b);
  friend Expression operator%(const Expression& a, const Expression& b);
  friend Expression operator<(const Expression& a, const Expression& b);
  friend Expression operator<=(const Expression& a, const Expression& b);
  friend Expression operator>(const Expression& a, const Expression& b);
  friend Expression operator>=(const Expression& a, const Expression& b);
  friend Expression operator==(const Expression& a, const Expression& b);
  friend Expression operator!=(const Expression& a, const Expression& b);
  friend Expression operator&&(const Expression& a, const Expression& b);
  friend Expression operator||(const Expression& a, const Expression& b);
  friend Expression operator!(const Expression& a);
  friend Expression min(const Expression& a, const Expression& b);
  friend Expression max(const Expression& a, const Expression& b);
  friend Expression ceil_div(const Expression& a, const Expression& b);
  /// Returns `yes` where `condition` is nonzero, else `no`.
  friend Expression select(const Expression& condition, const Expression& yes,
                           const Expression& no);

 private:
  /// One instruction of a stack machine. `constant` and `parameter` push a value; the others pop
  /// their operands and push the result.
  struct Step {
    enum Kind : std::uint8_t {
      constant,
      parameter,
      negative,
      logical_not,
      product,
      quotient,
      remainder,
      sum,
      difference,
      less,
      less_equal,
      greater,
      greater_equal,
      equal,
      not_equal,
      logical_and,
      logical_or,
      least,
      greatest,
      rounded_up,
      choice,
    };
    Kind kind = constant;
    std::int64_t operand = 0;  ///< the constant, or an index into parameters_
  };

  Expression() = default;
  static Expression combine(Step::Kind kind, std::initializer_list<const Expression*> operands);
  static std::int64_t apply(Step::Kind kind, std::int64_t a, std::int64_t b);

  std::vector<Step> steps_;
  std::vector<std::string> parameters_;
};

/// Makes expressions of parameters by name, e.g. p["BM"].
struct ParameterNames {
  Expression operator[](std::string_view name) const {
    return Expression::parameter(std::string(name));
  }
};
inline constexpr ParameterNames p;

/// Integer versions of the functions on expressions, so that a formula can be written once for
/// both.
constexpr std::int64_t min(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
constexpr std::int64_t max(std::int64_t a, std::int64_t b) {
  return a < b ? b : a;
}
constexpr std::int64_t select(bool condition, std::int64_t yes, std::int64_t no) {
  return condition ? yes : no;
}
/// Returns a / b rounded up. Both operands must be positive.
template <std::integral T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}
/// Returns the least multiple of b that is at least a. b must be positive, and a not negative.
template <std::integral T>
constexpr T round_up(T a, std::type_identity_t<T> b) {
  return ceil_div(a, b) * b;
}
/// Returns the least power of two that is at least `value`.
constexpr std::int64_t next_power(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

}  // namespace greta::kernels
