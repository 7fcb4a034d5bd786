#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// The value of a formula: a truth value, an integer, a real number, a word or a list of values.
struct FormulaValue {
  using List = std::vector<FormulaValue>;
  std::variant<bool, std::int64_t, double, std::string, List> is = false;

  bool is_number() const { return is.index() <= 2; }
  bool is_integer() const { return is.index() <= 1; }
  const std::string* word() const { return std::get_if<std::string>(&is); }
  const List* list() const { return std::get_if<List>(&is); }
  /// The integer, 1 or 0 of a truth value. Must be one of these.
  std::int64_t integer() const;
  /// The number. Must be one.
  double real() const;
  /// As in Python: whether it is true, not 0, not empty.
  bool truth() const;
  /// As formulas write it: [1, 2], 'fast', True.
  std::string text() const;
  /// "an integer", "a list"
  std::string kind() const;

  /// Numbers are equal by their value, whatever their kind.
  bool operator==(const FormulaValue& other) const;
};

}  // namespace greta::kernels
