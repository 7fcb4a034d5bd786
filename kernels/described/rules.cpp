#include "kernels/described/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/described/fields.hpp"

namespace greta::kernels::described {
namespace {

template <std::size_t count>
bool contains(const std::array<std::string_view, count>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The least and the greatest finite number of a type.
std::pair<double, double> range_of(DType type) {
  if (is_floating(type)) return {-largest_finite(type), largest_finite(type)};
  if (type == DType::u8 || type == DType::u32) return {0, std::exp2(bits_of(type)) - 1};
  return {-std::exp2(bits_of(type) - 1), std::exp2(bits_of(type) - 1) - 1};
}

}  // namespace

void check_meaning(const PlacedJson& place, const std::string& name) {
  constexpr std::array<std::string_view, 14> words{"and",    "or",   "not",   "in",       "is",
                                                   "if",     "else", "for",   "True",     "False",
                                                   "lambda", "true", "false", "workspace"};
  if (name == "workspace") fail(place, "the name workspace is that of the kernel's scratch memory");
  if (contains(words, name)) fail(place, fmt::format("{} is a word of formulas, not a name", name));
}

void check_word_of_problems(const PlacedJson& place, const std::string& name) {
  constexpr std::array<std::string_view, 4> words{"op", "dtype", "out", "help"};
  if (contains(words, name)) {
    fail(place, fmt::format("a dimension is not called {}, which has a meaning in problems", name));
  }
}

void check_macro(const PlacedJson& place, const std::string& name) {
  constexpr std::array<std::string_view, 52> words{
      "alignas",   "asm",       "auto",     "bool",    "break",   "case",     "char",     "class",
      "const",     "constexpr", "continue", "default", "delete",  "do",       "double",   "enum",
      "explicit",  "extern",    "float",    "goto",    "half",    "inline",   "int",      "long",
      "namespace", "new",       "operator", "private", "public",  "register", "return",   "short",
      "signed",    "sizeof",    "static",   "struct",  "switch",  "template", "this",     "typedef",
      "typename",  "union",     "unsigned", "using",   "virtual", "void",     "volatile", "while",
      "layout",    "uniform",   "main",     "defined"};
  if (contains(words, name)) {
    fail(place, fmt::format("a parameter becomes a macro, so it is not called {}, a word of the "
                            "source's language",
                            name));
  }
}

void check_words(const PlacedJson& place, const Formula& condition,
                 const std::vector<DescribedParameter>& parameters) {
  for (const auto& [name, word] : condition.compared_words()) {
    for (const DescribedParameter& one : parameters) {
      if (one.name != name) continue;
      const FormulaValue wanted{word};
      if (std::find(one.values.begin(), one.values.end(), wanted) != one.values.end()) continue;
      fail(place, fmt::format("{} is never {}; its values are {}", name, wanted.text(),
                              FormulaValue{one.values}.text()));
    }
  }
}

void check_fill(const PlacedJson& place, const DescribedOperand& operand) {
  const OperandFill& fill = operand.fill;
  if (fill.kind == OperandFill::Kind::file) return;
  const auto [least, most] = range_of(operand.dtype);
  const double last = fill.kind == OperandFill::Kind::constant ? fill.from
                      : fill.kind == OperandFill::Kind::ramp   ? std::max(fill.to - 1, 0.0)
                                                               : fill.to;
  const double first = fill.kind == OperandFill::Kind::ramp ? 0 : fill.from;
  for (const double number : {first, last}) {
    if (number >= least && number <= most) continue;
    fail(place, fmt::format("{} is not a number of the type {}, {} to {}", number,
                            to_string(operand.dtype), least, most));
  }
}

std::vector<std::string> read_sources(const PlacedJson& value) {
  std::vector<std::string> names = read_file_names(value);
  if (names.empty()) fail(value, "must have a file");
  return names;
}

}  // namespace greta::kernels::described
