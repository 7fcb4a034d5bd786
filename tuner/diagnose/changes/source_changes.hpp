#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A small change of a kernel's source, as a programmer makes to mend a slip.
struct SourceChange {
  std::size_t start = 0, length = 0;  ///< what is replaced, in bytes
  std::string by;
  /// What the change mends: "wrong constant", "wrong operator", "wrong limit", …
  std::string kind;
  int rank = 0;      ///< how likely changes like it are: 0 to 3, the lower the more
  double worth = 0;  ///< how likely it is among all changes of a source, as a logarithm

  /// Whether it adds a statement.
  bool is_statement() const { return length == 0 && by.ends_with(";"); }
  std::string applied_to(std::string_view source) const {
    return std::string(source.substr(0, start)) + by + std::string(source.substr(start + length));
  }
};

/// Returns single changes of what a kernel's entry uses, the most likely first: other operators,
/// constants and limits, other variables of the same function, terms that are added or left out,
/// exchanged operands and statements, and further barriers. Many don't compile.
std::vector<SourceChange> changes_of(std::string_view source, std::string_view entry);

}  // namespace greta::tuner
