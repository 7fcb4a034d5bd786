#include "kernels/model/expression.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace greta::kernels {
namespace {

/// The stack's representation of an undefined value.
constexpr std::int64_t undefined = std::numeric_limits<std::int64_t>::min();

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  return __builtin_mul_overflow(a, b, &a) ? undefined : a;
}

std::int64_t add(std::int64_t a, std::int64_t b) {
  return __builtin_add_overflow(a, b, &a) ? undefined : a;
}

std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return __builtin_sub_overflow(a, b, &a) ? undefined : a;
}

std::int64_t divide(std::int64_t a, std::int64_t b, bool up) {
  if (b == 0) return undefined;
  const bool rounded = up && a % b != 0 && (a < 0) == (b < 0);
  return a / b + (rounded ? 1 : 0);
}

std::int64_t both(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == undefined || b == undefined ? undefined : 1;
}

std::int64_t either(std::int64_t a, std::int64_t b) {
  if ((a != 0 && a != undefined) || (b != 0 && b != undefined)) return 1;
  return a == undefined || b == undefined ? undefined : 0;
}

}  // namespace

std::int64_t Expression::apply(Step::Kind kind, std::int64_t a, std::int64_t b) {
  if (kind == Step::logical_and) return both(a, b);
  if (kind == Step::logical_or) return either(a, b);
  if (a == undefined || b == undefined) return undefined;
  switch (kind) {
    case Step::negative:
      return -a;
    case Step::logical_not:
      return a == 0;
    case Step::product:
      return multiply(a, b);
    case Step::quotient:
      return divide(a, b, false);
    case Step::remainder:
      return b == 0 ? undefined : b == -1 ? 0 : a % b;
    case Step::sum:
      return add(a, b);
    case Step::difference:
      return subtract(a, b);
    case Step::less:
      return a < b;
    case Step::less_equal:
      return a <= b;
    case Step::greater:
      return a > b;
    case Step::greater_equal:
      return a >= b;
    case Step::equal:
      return a == b;
    case Step::not_equal:
      return a != b;
    case Step::least:
      return std::min(a, b);
    case Step::greatest:
      return std::max(a, b);
    case Step::rounded_up:
      return divide(a, b, true);
    default:
      return undefined;
  }
}

std::optional<std::int64_t> Expression::value(std::span<const std::int64_t> values) const {
  std::vector<std::int64_t> deep;
  std::array<std::int64_t, 32> shallow;  // NOLINT: written before it is read
  std::int64_t* stack = shallow.data();
  if (steps_.size() > shallow.size()) {
    deep.resize(steps_.size());
    stack = deep.data();
  }
  std::size_t top = 0;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::constant:
        stack[top++] = step.operand;
        break;
      case Step::parameter:
        stack[top++] = values[static_cast<std::size_t>(step.operand)];
        break;
      case Step::negative:
      case Step::logical_not:
        stack[top - 1] = apply(step.kind, stack[top - 1], 0);
        break;
      case Step::choice:
        top -= 2;
        if (stack[top - 1] != undefined)
          stack[top - 1] = stack[top - 1] != 0 ? stack[top] : stack[top + 1];
        break;
      default:
        --top;
        stack[top - 1] = apply(step.kind, stack[top - 1], stack[top]);
    }
  }
  if (stack[0] == undefined) return std::nullopt;
  return stack[0];
}

Expression Expression::parameter(std::string name) {
  Expression expression;
  expression.steps_ = {{Step::parameter, 0}};
  expression.parameters_ = {std::move(name)};
  return expression;
}

Expression Expression::combine(Step::Kind kind, std::initializer_list<const Expression*> operands) {
  Expression whole;
  for (const Expression* operand : operands) {
    std::vector<std::int64_t> position;  // index of each operand parameter in `whole`
    for (const std::string& name : operand->parameters_) {
      auto found = std::find(whole.parameters_.begin(), whole.parameters_.end(), name);
      position.push_back(found - whole.parameters_.begin());
      if (found == whole.parameters_.end()) whole.parameters_.push_back(name);
    }
    for (Step step : operand->steps_) {
      if (step.kind == Step::parameter) {
        step.operand = position[static_cast<std::size_t>(step.operand)];
      }
      whole.steps_.push_back(step);
    }
  }
  whole.steps_.push_back({kind, 0});
  const bool constant = whole.parameters_.empty();
  if (const auto value = constant ? whole.value({}) : std::nullopt) return {*value};
  return whole;
}

Expression operator+(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::sum, {&a, &b});
}
Expression operator-(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::difference, {&a, &b});
}
Expression operator-(const Expression& a) {
  return Expression::combine(Expression::Step::negative, {&a});
}
Expression operator*(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::product, {&a, &b});
}
Expression operator/(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::quotient, {&a, &b});
}
Expression operator%(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::remainder, {&a, &b});
}
Expression operator<(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::less, {&a, &b});
}
Expression operator<=(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::less_equal, {&a, &b});
}
Expression operator>(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::greater, {&a, &b});
}
Expression operator>=(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::greater_equal, {&a, &b});
}
Expression operator==(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::equal, {&a, &b});
}
Expression operator!=(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::not_equal, {&a, &b});
}
Expression operator&&(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::logical_and, {&a, &b});
}
Expression operator||(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::logical_or, {&a, &b});
}
Expression operator!(const Expression& a) {
  return Expression::combine(Expression::Step::logical_not, {&a});
}
Expression min(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::least, {&a, &b});
}
Expression max(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::greatest, {&a, &b});
}
Expression ceil_div(const Expression& a, const Expression& b) {
  return Expression::combine(Expression::Step::rounded_up, {&a, &b});
}
Expression select(const Expression& condition, const Expression& yes, const Expression& no) {
  return Expression::combine(Expression::Step::choice, {&condition, &yes, &no});
}

}  // namespace greta::kernels
