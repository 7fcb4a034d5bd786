#pragma once

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

/// Whole numbers (64 bits, signed) computed from a configuration's parameters: what constraints are
/// made of. In C++ it is written with operators, `p["BM"] / p["TM"] <= 32` with `parameters p`; in
/// files as text, which text() prints and parse() reads.
///
/// Operators by falling precedence: `not`, unary `-`; `*`, `/` (towards zero), `%`; `+`, `-`; `<`,
/// `<=`, `>`, `>=`, `==`, `!=`; `and`; `or`; `c ? a : b`. Functions: min(a, b), max(a, b),
/// ceil_div(a, b). Truth is 1 and 0. parse() also reads `//`, `&&`, `||`, `!` and comparisons in a
/// chain, as Python has them.
///
/// What divides by zero or leaves 64 bits has no value; `and` has one where a side is 0, `or` where
/// a side is not 0.
class Expression {
 public:
  Expression(std::integral auto value)  // NOLINT(google-explicit-constructor): 2 * p["BM"]
      : steps_{{Step::constant, static_cast<std::int64_t>(value)}} {}

  static Expression parameter(std::string name);
  /// Fails with `invalid_argument`, and says where.
  static Result<Expression> parse(std::string_view text);
  std::string text() const;

  /// Those that it reads, each once, in order of appearance.
  const std::vector<std::string>& parameters() const { return parameters_; }
  /// `values`: of parameters(), in this order.
  std::optional<std::int64_t> value(std::span<const std::int64_t> values) const;
  /// Whether it has a value other than 0.
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
  /// `yes` where `condition` is not 0, else `no`.
  friend Expression select(const Expression& condition, const Expression& yes,
                           const Expression& no);

 private:
  /// One step of a stack machine. `constant` and `parameter` push; the others take their operands
  /// from the stack and push their result.
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
    std::int64_t operand = 0;  ///< the constant, or the position among parameters_
  };

  Expression() = default;
  static Expression combine(Step::Kind kind, std::initializer_list<const Expression*> operands);
  static std::int64_t apply(Step::Kind kind, std::int64_t a, std::int64_t b);

  std::vector<Step> steps_;
  std::vector<std::string> parameters_;
};

/// Parameters by name, as expressions.
struct ParameterNames {
  Expression operator[](std::string_view name) const {
    return Expression::parameter(std::string(name));
  }
};
inline constexpr ParameterNames p;

/// The functions of expressions on numbers, so that a formula can be written once for both.
constexpr std::int64_t min(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
constexpr std::int64_t max(std::int64_t a, std::int64_t b) {
  return a < b ? b : a;
}
constexpr std::int64_t select(bool condition, std::int64_t yes, std::int64_t no) {
  return condition ? yes : no;
}
/// a / b, rounded up; both positive.
template <std::integral T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

}  // namespace greta::kernels
