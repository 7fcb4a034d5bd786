#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/dtype.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels {

/// What to compute: an operation, its element types, its attributes and its dimensions.
///
/// The canonical key reads `gemm dtype=f16 out=f32 layout=nn epilogue=bias,silu m=1 n=2 k=3`:
/// the operation, then name=value pairs in the operation's own order; attributes that have their
/// default value are left out. An integer is a dimension, so an attribute whose value is one is
/// quoted: `alpha="2"`. Two problems are the same when their keys are.
struct Problem {
  std::string op;
  DType dtype = DType::f32;                                     ///< of the inputs
  DType out_dtype = DType::f32;                                 ///< of the output
  std::vector<std::pair<std::string, std::string>> attributes;  ///< non-default ones only
  std::vector<std::pair<std::string, std::int64_t>> dims;       ///< in the operation's order

  /// The value of a dimension; throws Error when there is none of that name.
  std::int64_t dim(std::string_view name) const;
  /// The value of an attribute, or `fallback` where it has its default.
  std::string attribute(std::string_view name, std::string_view fallback) const;

  /// The value of an attribute that says how many elements it is from one row to the next; 0 where
  /// it has its default, `packed`, as TensorSpec::stride.
  std::int64_t stride(std::string_view name, std::int64_t packed) const;

  std::string key() const;
  /// "m=1 n=2 k=3": the dimensions alone, as in CSV files.
  std::string dims_text() const;
  /// The inverse of key(). Checks the form only; Operation::check judges the meaning.
  static Result<Problem> parse(std::string_view key);

  bool operator==(const Problem&) const = default;
};

/// For hash tables.
struct ProblemHash {
  std::size_t operator()(const Problem& problem) const;
};

}  // namespace greta::kernels
