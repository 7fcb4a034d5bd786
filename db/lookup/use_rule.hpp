#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/catalog.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::db {

/// A condition of a rule on one field of a problem.
struct UseCondition {
  enum class Relation { equal, not_equal, less, at_most, greater, at_least };
  std::string field;  ///< a dimension, an attribute, "dtype" or "out"
  Relation relation = Relation::equal;
  std::string value;  ///< canonical
};

/// Values that a rule gives to parameters of its variant, as text: a number, or one of the words of
/// a described kernel.
using UseValues = std::vector<std::pair<std::string, std::string>>;

/// A rule that decides which configuration runs for the problems that it matches, before any
/// look-up: "gemm m<=64 dtype=f16: tiled BM=64 BN=64".
///
/// The part before the colon names the operation, or * for each operation that has the variant, and
/// then conditions, all of which must hold: a dimension, an attribute, `dtype` or `out`, with =,
/// !=,
/// <, <=, > or >=, and a value. An attribute that a problem does not have has its default. The part
/// after the colon names the variant and values of its parameters. Parameters without a value have
/// that of the best known configuration of the variant with the given values (Lookup::best_of).
class UseRule {
 public:
  /// Reads a rule for the operations of a catalog. `device` is one on which it may run: which
  /// parameters a variant has can depend on that. Fails with `invalid_argument` and one line for an
  /// operation, field, value, variant or parameter that does not exist.
  static Result<UseRule> parse(const Catalog& catalog, const DeviceInfo& device,
                               std::string_view text);

  const std::string& text() const { return text_; }  ///< with single spaces
  const std::string& variant() const { return variant_; }
  const UseValues& values() const { return values_; }
  /// Returns whether the rule decides about a valid problem of this operation.
  bool matches(const Operation& operation, const Problem& problem) const;

 private:
  std::string text_;
  std::string operation_;  ///< a name, or "*"
  std::vector<UseCondition> conditions_;
  std::string variant_;
  UseValues values_;
};

/// Returns the rules in a text as lines of text with the place of each for messages: the text
/// itself, or, for "@FILE", the lines of the file that are neither empty nor begin with '#', each
/// with "FILE:LINE". Fails if the file can't be read.
struct PlacedRule {
  std::string place;  ///< empty: the text itself
  std::string text;
};
Result<std::vector<PlacedRule>> placed_rules(std::string_view text);

}  // namespace greta::db
