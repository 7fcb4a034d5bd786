#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::kernels {

/// A value of a JSON document that knows its place.
struct PlacedJson {
  using Items = std::vector<PlacedJson>;
  using Members = std::vector<std::pair<std::string, PlacedJson>>;
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Items, Members> is{};
  std::string path;  ///< "operands[2].type"; empty: the whole document
  int line = 1;      ///< from 1, as column
  int column = 1;

  static constexpr std::size_t most_bytes = 4 << 20;
  static constexpr std::size_t most_depth = 32;

  /// Reads a document, which may have comments as in C++. A key occurs once in an object. Fails
  /// with `invalid_argument` and the place of the error.
  static Result<PlacedJson> parse(std::string_view text);

  const bool* truth() const { return std::get_if<bool>(&is); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&is); }
  const double* real() const { return std::get_if<double>(&is); }
  const std::string* text() const { return std::get_if<std::string>(&is); }
  const Items* items() const { return std::get_if<Items>(&is); }
  const Members* members() const { return std::get_if<Members>(&is); }
  /// Returns the object's member, or null.
  const PlacedJson* find(std::string_view key) const;
  /// "a string", "an object"
  std::string_view kind() const;
  /// Scalars as in the document, at most about 40 characters; "an object" etc.
  std::string shown() const;

  /// Returns "line 3, column 5, operands[2].type".
  std::string place() const;
  /// Returns "line 3, column 5, operands[2].type: MESSAGE".
  Failure failure(std::string_view message) const;
};

}  // namespace greta::kernels
