#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/dtype.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels {

/// A problem: an operation, its element types, its attributes and its dimensions.
///
/// The canonical key is `gemm dtype=f16 out=f32 layout=nn epilogue=bias,silu m=1 n=2 k=3`: the
/// operation, then name=value pairs in the operation's order. Attributes that have their default
/// value are omitted. Unquoted integers are dimensions, so an attribute with an integer value is
/// quoted: `alpha="2"`. Two problems are equal if their keys are equal.
struct Problem {
  std::string op;
  DType dtype = DType::f32;                                     ///< of the inputs
  DType out_dtype = DType::f32;                                 ///< of the output
  std::vector<std::pair<std::string, std::string>> attributes;  ///< non-default ones only
  std::vector<std::pair<std::string, std::int64_t>> dims;       ///< in the operation's order

  /// Returns the extent of a dimension. Throws Error if there is no dimension of that name.
  std::int64_t dim(std::string_view name) const;
  /// Returns the extent of a dimension, which may be changed. Throws as dim().
  std::int64_t& extent(std::string_view name);
  /// Returns the extent of a dimension, or `fallback` if there is none: of an optional one.
  std::int64_t dim(std::string_view name, std::int64_t fallback) const;
  /// Returns the value of an attribute, or `fallback` if the attribute has its default.
  std::string attribute(std::string_view name, std::string_view fallback) const;

  /// Returns the value of a row stride attribute in elements, or 0 if it is not set or equals
  /// `packed`, as in TensorSpec::stride.
  std::int64_t stride(std::string_view name, std::int64_t packed) const;

  std::string key() const;
  /// Returns the dimensions alone, as in CSV files: "m=1 n=2 k=3".
  std::string dims_text() const;
  /// The inverse of key(). Checks only the form; check_problem() checks the meaning.
  static Result<Problem> parse(std::string_view key);

  bool operator==(const Problem&) const = default;
};

struct ProblemHash {
  std::size_t operator()(const Problem& problem) const;
};

}  // namespace greta::kernels
