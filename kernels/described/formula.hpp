#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/described/value.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels {

/// The operators and operands of a formula. Operands stand before what uses them.
struct FormulaTree {
  enum class Kind : std::uint8_t {
    literal,
    name,
    element,  // `element`: of the comprehensions around, counted from outside
    list,
    comprehension,  // items; element's formula, list, condition or none
    choice,
    either,
    both,
    negation,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    contained,
    not_contained,
    sum,
    difference,
    product,
    quotient,
    floor_quotient,
    remainder,
    power,
    minus,
    plus,
    absolute,
    rounded_up,
    item,
    real,
    integer,
    length,
    elements,
    greatest,
    least,
    range,
  };
  struct Node {
    Kind kind = Kind::literal;
    std::size_t at = 0;                ///< position in the text, from 0
    std::size_t number = 0;            ///< of the name or the comprehension's element
    FormulaValue value{};              ///< of a literal
    std::vector<std::size_t> parts{};  ///< nodes of operands
  };
  std::vector<Node> nodes{1};
  std::size_t root = 0;
};

/// A formula in a description of a kernel, over names of dimensions and tunable parameters. The
/// language is a part of Python's expressions, with the same meaning and precedence:
///
///   a if c else b, or, and, not, < <= > >= == != in `not in` (chained), + -, * / // %, unary + -,
///   **, numbers, 'words', True, False, names, (…), [a, b], [f for x in list if c], list[i],
///   abs, ceil_div, float, int, len, list, max, min, range
///
/// and `||`, `&&` and `!` for or, and, not. `/` is the exact quotient, a real number; `//` rounds
/// down. Nothing else can be called, and no name reaches anything but a value, so that formulas
/// from anywhere are safe to evaluate. Formulas are limited in length and depth, lists in their
/// number of elements and evaluation in its number of steps.
class Formula {
 public:
  static constexpr std::size_t most_characters = 4096;
  static constexpr int most_depth = 60;                ///< of brackets and the like
  static constexpr std::size_t most_terms = 1000;      ///< operators, names and literals
  static constexpr std::size_t most_elements = 65536;  ///< of a list, characters of a word
  static constexpr std::int64_t most_steps = 1'000'000;

  /// The formula "False".
  Formula() : text_("False") {}
  /// Fails with `invalid_argument` and the position of the error, counted from 1.
  static Result<Formula> parse(std::string_view text);
  /// A formula whose value is known.
  static Formula constant(FormulaValue value);

  const std::string& text() const { return text_; }
  /// "line 3, column 5, grid[0]": where a document has it; empty: nowhere.
  const std::string& place() const { return place_; }
  void set_place(std::string place) { place_ = std::move(place); }
  /// Returns the names that the formula reads, each once, in order of appearance.
  const std::vector<std::string>& names() const { return names_; }
  /// Evaluates the formula; `values` are those of names(), in the same order. Fails with
  /// `invalid_argument` where Python would: divisions by zero, operands of other kinds; and where a
  /// limit or the range of integers, 64 bits with a sign, is exceeded.
  /// `steps` is the number of steps it may take, and after the call what is left of them.
  Result<FormulaValue> value(const std::vector<FormulaValue>& values, std::int64_t& steps) const;
  Result<FormulaValue> value(const std::vector<FormulaValue>& values) const;
  /// Evaluates the formula with values of names that `value_of` knows; null: unknown, which fails.
  Result<FormulaValue> value(
      const std::function<const FormulaValue*(const std::string&)>& value_of) const;

  /// Returns the words that are compared with a name: {name, word}.
  std::vector<std::pair<std::string, std::string>> compared_words() const;

 private:
  std::string text_, place_;
  std::vector<std::string> names_;
  FormulaTree tree_;
};

}  // namespace greta::kernels
