#include "kernels/described/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace greta::kernels {
namespace {

using List = FormulaValue::List;

struct BadValue {
  std::size_t at;  ///< in the text
  std::string message;
};

std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

/// One evaluation. The nodes of a formula are no more than most_terms, so that they may be visited
/// by recursion.
class FormulaRun {
 public:
  using Kind = FormulaTree::Kind;
  using Node = FormulaTree::Node;

  FormulaRun(const FormulaTree& tree, const std::vector<FormulaValue>& values, std::int64_t most)
      : tree_(tree), values_(values), most_(most) {}

  std::int64_t steps() const { return steps_; }

  FormulaValue value() { return value(tree_.root); }

 private:
  [[noreturn]] static void fail(const Node& node, std::string message) {
    throw BadValue{node.at, std::move(message)};
  }

  FormulaValue value(std::size_t index) {
    const Node& node = tree_.nodes[index];
    if (++steps_ > most_) fail(node, fmt::format("the formula takes more than {} steps", most_));
    switch (node.kind) {
      case Kind::literal:
        return node.value;
      case Kind::name:
        return values_[node.number];
      case Kind::element:
        return elements_[node.number];
      case Kind::list:
        return list(node);
      case Kind::comprehension:
        return comprehension(node);
      case Kind::choice:
        return value(node.parts[value(node.parts[0]).truth() ? 1 : 2]);
      case Kind::either:
      case Kind::both:
        return logical(node);
      case Kind::negation:
        return {!value(node.parts[0]).truth()};
      default:
        break;
    }
    return node.kind <= Kind::not_contained ? compared(node)
           : node.kind <= Kind::power       ? arithmetic(node)
                                            : called(node);
  }

  FormulaValue logical(const Node& node) {
    FormulaValue left = value(node.parts[0]);
    return left.truth() == (node.kind == Kind::either) ? left : value(node.parts[1]);
  }

  void count_elements(const Node& node, std::size_t count) {
    if (count > Formula::most_elements) {
      fail(node, fmt::format("a list has at most {} elements", Formula::most_elements));
    }
    steps_ += static_cast<std::int64_t>(count);
  }

  FormulaValue list(const Node& node) {
    List all;
    for (const std::size_t part : node.parts) all.push_back(value(part));
    return {std::move(all)};
  }

  FormulaValue comprehension(const Node& node) {
    const FormulaValue from = value(node.parts[1]);
    if (from.list() == nullptr) fail(node, fmt::format("'in' needs a list, not {}", from.kind()));
    List all;
    for (const FormulaValue& element : *from.list()) {
      elements_.push_back(element);
      if (node.parts.size() < 3 || value(node.parts[2]).truth())
        all.push_back(value(node.parts[0]));
      elements_.pop_back();
    }
    return {std::move(all)};
  }

  FormulaValue compared(const Node& node) {
    const FormulaValue a = value(node.parts[0]), b = value(node.parts[1]);
    switch (node.kind) {
      case Kind::equal:
        return {a == b};
      case Kind::not_equal:
        return {!(a == b)};
      case Kind::contained:
      case Kind::not_contained: {
        if (b.list() == nullptr) fail(node, fmt::format("'in' needs a list, not {}", b.kind()));
        count_elements(node, b.list()->size());
        const bool found = std::find(b.list()->begin(), b.list()->end(), a) != b.list()->end();
        return {found == (node.kind == Kind::contained)};
      }
      default:
        break;
    }
    if (!a.is_number() || !b.is_number()) {
      fail(node, fmt::format("{} and {} have no order", a.kind(), b.kind()));
    }
    if (a.is_integer() && b.is_integer()) return {ordered(node, a.integer(), b.integer())};
    return {ordered(node, a.real(), b.real())};
  }
  template <typename Number>
  static bool ordered(const Node& node, Number a, Number b) {
    switch (node.kind) {
      case Kind::less:
        return a < b;
      case Kind::less_equal:
        return a <= b;
      case Kind::greater:
        return a > b;
      default:
        return a >= b;
    }
  }

  FormulaValue arithmetic(const Node& node) {
    FormulaValue a = value(node.parts[0]), b = value(node.parts[1]);
    if (node.kind == Kind::sum && a.list() != nullptr && b.list() != nullptr) {
      List all = *a.list();
      count_elements(node, all.size() + b.list()->size());
      all.insert(all.end(), b.list()->begin(), b.list()->end());
      return {std::move(all)};
    }
    if (!a.is_number() || !b.is_number()) {
      fail(node, fmt::format("{} and {} can't be calculated with", a.kind(), b.kind()));
    }
    const bool divides = node.kind == Kind::quotient || node.kind == Kind::floor_quotient ||
                         node.kind == Kind::remainder;
    if (divides && b.real() == 0) fail(node, "a division by zero");
    const bool inverse = node.kind == Kind::power && b.real() < 0;
    if (a.is_integer() && b.is_integer() && node.kind != Kind::quotient && !inverse) {
      return {of_integers(node, a.integer(), b.integer())};
    }
    return {finite(node, of_reals(node, a.real(), b.real()))};
  }

  static std::int64_t of_integers(const Node& node, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    bool beyond = false;
    switch (node.kind) {
      case Kind::sum:
        beyond = __builtin_add_overflow(a, b, &result);
        break;
      case Kind::difference:
        beyond = __builtin_sub_overflow(a, b, &result);
        break;
      case Kind::product:
        beyond = __builtin_mul_overflow(a, b, &result);
        break;
      case Kind::floor_quotient:
        beyond = b == -1 && a == std::numeric_limits<std::int64_t>::min();
        result = beyond ? 0 : floor_divided(a, b);
        break;
      case Kind::remainder:
        result = b == -1 ? 0 : a - b * floor_divided(a, b);
        break;
      default:
        return power(node, a, b);
    }
    if (beyond) fail(node, "an integer of more than 64 bits");
    return result;
  }
  static std::int64_t power(const Node& node, std::int64_t base, std::int64_t exponent) {
    if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    std::int64_t result = 1;
    for (; exponent > 0; --exponent) {
      if (__builtin_mul_overflow(result, base, &result)) {
        fail(node, "an integer of more than 64 bits");
      }
    }
    return result;
  }

  static double of_reals(const Node& node, double a, double b) {
    switch (node.kind) {
      case Kind::sum:
        return a + b;
      case Kind::difference:
        return a - b;
      case Kind::product:
        return a * b;
      case Kind::quotient:
        return a / b;
      case Kind::floor_quotient:
        return std::floor(a / b);
      case Kind::remainder:
        return a - b * std::floor(a / b);
      default:
        return std::pow(a, b);
    }
  }
  static double finite(const Node& node, double number) {
    if (!std::isfinite(number)) fail(node, "a number that is not finite");
    return number;
  }

  FormulaValue called(const Node& node) {
    List operands;
    for (const std::size_t part : node.parts) operands.push_back(value(part));
    const FormulaValue& first = operands.front();
    switch (node.kind) {
      case Kind::length:
        if (first.list() == nullptr)
          fail(node, fmt::format("len takes a list, not {}", first.kind()));
        return {static_cast<std::int64_t>(first.list()->size())};
      case Kind::elements:
        if (first.list() == nullptr) {
          fail(node, fmt::format("list takes a list, not {}", first.kind()));
        }
        return first;
      case Kind::greatest:
      case Kind::least:
        return extreme(node,
                       operands.size() == 1 && first.list() != nullptr ? *first.list() : operands);
      case Kind::range:
        return range(node, operands);
      case Kind::item:
        return item(node, first, operands[1]);
      default:
        break;
    }
    for (const FormulaValue& operand : operands) {
      if (!operand.is_number())
        fail(node, fmt::format("a number is needed, not {}", operand.kind()));
    }
    return of_numbers(node, operands);
  }

  static FormulaValue of_numbers(const Node& node, const List& operands) {
    const FormulaValue& first = operands.front();
    switch (node.kind) {
      case Kind::plus:
        return first.is_integer() ? FormulaValue{first.integer()} : first;
      case Kind::minus:
      case Kind::absolute: {
        if (node.kind == Kind::absolute && first.real() >= 0) return first;
        if (!first.is_integer()) return {-first.real()};
        if (first.integer() == std::numeric_limits<std::int64_t>::min()) {
          fail(node, "an integer of more than 64 bits");
        }
        return {-first.integer()};
      }
      case Kind::real:
        return {first.real()};
      case Kind::integer:
        if (first.is_integer()) return {first.integer()};
        if (std::abs(first.real()) >= 0x1p63) fail(node, "an integer of more than 64 bits");
        return {static_cast<std::int64_t>(first.real())};
      default:
        return {rounded_up(node, operands)};
    }
  }
  static std::int64_t rounded_up(const Node& node, const List& operands) {
    if (!operands[0].is_integer() || !operands[1].is_integer()) {
      fail(node, "ceil_div takes integers");
    }
    const std::int64_t a = operands[0].integer(), b = operands[1].integer();
    if (b == 0) fail(node, "a division by zero");
    if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) {
      fail(node, "an integer of more than 64 bits");
    }
    return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
  }

  static FormulaValue extreme(const Node& node, const List& values) {
    if (values.empty()) fail(node, "an empty list has no least or greatest element");
    const FormulaValue* best = nullptr;
    for (const FormulaValue& one : values) {
      if (!one.is_number()) fail(node, fmt::format("{} has no order", one.kind()));
      const bool both_integers = best != nullptr && one.is_integer() && best->is_integer();
      const bool less = best != nullptr && (both_integers ? one.integer() < best->integer()
                                                          : one.real() < best->real());
      const bool greater = best != nullptr && (both_integers ? one.integer() > best->integer()
                                                             : one.real() > best->real());
      if (best == nullptr || (node.kind == Kind::least ? less : greater)) best = &one;
    }
    return *best;
  }

  /// As in Python, -1 is the last one.
  static FormulaValue item(const Node& node, const FormulaValue& list, const FormulaValue& index) {
    if (list.list() == nullptr || !index.is_integer()) {
      fail(node, fmt::format("{} of {} is not an item", index.kind(), list.kind()));
    }
    const auto size = static_cast<std::int64_t>(list.list()->size());
    const std::int64_t at = index.integer() + (index.integer() < 0 ? size : 0);
    if (at < 0 || at >= size) {
      fail(node, fmt::format("a list of {} has no item {}", size, index.integer()));
    }
    return list.list()->at(static_cast<std::size_t>(at));
  }

  FormulaValue range(const Node& node, const List& operands) {
    for (const FormulaValue& operand : operands) {
      if (!operand.is_integer())
        fail(node, fmt::format("range takes integers, not {}", operand.kind()));
    }
    const std::int64_t begin = operands.size() > 1 ? operands[0].integer() : 0;
    const std::int64_t end = operands[operands.size() > 1 ? 1 : 0].integer();
    const std::int64_t step = operands.size() > 2 ? operands[2].integer() : 1;
    if (step == 0) fail(node, "the step of a range is 0");
    List all;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
      count_elements(node, all.size() + 1);
      steps_ -= static_cast<std::int64_t>(all.size());  // each element once
      all.push_back({i});
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return {std::move(all)};
  }

  const FormulaTree& tree_;
  const std::vector<FormulaValue>& values_;
  List elements_;
  std::int64_t most_, steps_ = 0;
};

}  // namespace

Result<FormulaValue> Formula::value(const std::vector<FormulaValue>& values,
                                    std::int64_t& steps) const {
  if (values.size() != names_.size()) throw Error("a formula needs a value for each of its names");
  FormulaRun run(tree_, values, steps);
  try {
    FormulaValue value = run.value();
    steps = std::max<std::int64_t>(0, steps - run.steps());
    return value;
  } catch (const BadValue& bad) {
    steps = std::max<std::int64_t>(0, steps - run.steps());
    return invalid_argument(fmt::format("column {}: {}", bad.at + 1, bad.message));
  }
}

Result<FormulaValue> Formula::value(const std::vector<FormulaValue>& values) const {
  std::int64_t steps = most_steps;
  return value(values, steps);
}

std::vector<std::pair<std::string, std::string>> Formula::compared_words() const {
  using Kind = FormulaTree::Kind;
  std::vector<std::pair<std::string, std::string>> words;
  const auto& nodes = tree_.nodes;
  const auto add = [&](const FormulaTree::Node& one, const FormulaTree::Node& other) {
    if (one.kind != Kind::name) return;
    const std::string* const word = other.kind == Kind::literal ? other.value.word() : nullptr;
    if (word != nullptr) words.emplace_back(names_[one.number], *word);
  };
  for (const FormulaTree::Node& node : nodes) {
    if (node.kind == Kind::equal || node.kind == Kind::not_equal) {
      add(nodes[node.parts[0]], nodes[node.parts[1]]);
      add(nodes[node.parts[1]], nodes[node.parts[0]]);
    }
    const bool contains = node.kind == Kind::contained || node.kind == Kind::not_contained;
    if (!contains || nodes[node.parts[1]].kind != Kind::list) continue;
    for (const std::size_t item : nodes[node.parts[1]].parts)
      add(nodes[node.parts[0]], nodes[item]);
  }
  return words;
}

Result<FormulaValue> Formula::value(
    const std::function<const FormulaValue*(const std::string&)>& value_of) const {
  std::vector<FormulaValue> values;
  for (const std::string& name : names_) {
    const FormulaValue* const known = value_of(name);
    if (known == nullptr) return invalid_argument(fmt::format("nothing is called {}", name));
    values.push_back(*known);
  }
  return value(values);
}

}  // namespace greta::kernels
