#include "kernels/described/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace greta::kernels {

std::int64_t FormulaValue::integer() const {
  if (const bool* truth = std::get_if<bool>(&is)) return *truth ? 1 : 0;
  return std::get<std::int64_t>(is);
}

double FormulaValue::real() const {
  if (const double* number = std::get_if<double>(&is)) return *number;
  return static_cast<double>(integer());
}

bool FormulaValue::truth() const {
  if (is_integer()) return integer() != 0;
  if (is_number()) return real() != 0;
  return word() != nullptr ? !word()->empty() : !list()->empty();
}

std::string FormulaValue::text() const {
  if (const bool* truth = std::get_if<bool>(&is)) return *truth ? "True" : "False";
  if (is_integer()) return std::to_string(integer());
  if (is_number()) {
    const std::string text = fmt::format("{}", real());
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  if (word() != nullptr) return fmt::format("'{}'", *word());
  std::string text;
  for (const FormulaValue& value : *list()) text += (text.empty() ? "" : ", ") + value.text();
  return fmt::format("[{}]", text);
}

std::string FormulaValue::kind() const {
  constexpr std::array kinds{"a truth value", "an integer", "a real number", "a word", "a list"};
  return kinds.at(is.index());
}

bool FormulaValue::operator==(const FormulaValue& other) const {
  if (is_integer() && other.is_integer()) return integer() == other.integer();
  if (is_number() && other.is_number()) return real() == other.real();
  return is == other.is;
}

}  // namespace greta::kernels
