#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "kernels/model/problem.hpp"

namespace greta::kernels::gemm {

/// Whether a problem is one product, or one for each of several groups of rows: one after the
/// other, or each in a block of m rows of which the first ones count; or a batch of products that
/// have their matrices at equal distances (groups.hip).
enum class Grouping { none, contiguous, masked, batch };

/// The dimensions, types and attributes of a GEMM problem.
struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
  Grouping grouping = Grouping::none;
  std::int64_t groups = 1;  ///< products: each has an op(B)
  /// Of a batch: elements from one matrix to the next; 0 for a B that all products have.
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
  DType in = DType::f32;
  DType out = DType::f32;
  bool a_along_k = true;   ///< K is contiguous in A: layouts nn and nt
  bool b_along_k = false;  ///< K is contiguous in B: layout nt
  bool bias = false;
  bool residual = false;
  int activation = 0;  ///< 0 none, 1 silu, 2 gelu; as in operands.glsl
  /// C = act(gate) * up: B has n columns of gates and as many of ups.
  bool gated = false;
  bool norm = false;  ///< A's rows are divided by their root mean square and multiplied by weights
  float epsilon = 0;  ///< what is added under the root
  bool tf32x3 = false;  ///< f32 products may be three of TF32 (attribute math)
  float alpha = 1;
  float beta = 0;

  /// Return whether there are several products, and whether they are groups of rows.
  bool several() const { return grouping != Grouping::none; }
  bool grouped() const { return several() && grouping != Grouping::batch; }
  /// Returns the rows of a group in the mean, as far as they are known before a launch: a masked
  /// one is taken as half full.
  std::int64_t rows_of_group() const {
    if (!grouped()) return m;
    const std::int64_t parts = grouping == Grouping::masked ? 2 : groups;
    return (m + parts - 1) / parts;
  }
  /// Returns the number of columns of op(A) op(B).
  std::int64_t products() const { return gated ? 2 * n : n; }
  /// Leading dimensions of A and B as stored, in elements.
  std::int64_t a_stride() const { return a_along_k ? k : m; }
  std::int64_t b_stride() const { return b_along_k ? k : products(); }
  /// Return what divides the distances of all lines of A, B and C, in elements.
  std::int64_t a_unit() const { return std::gcd(a_stride(), a_step); }
  std::int64_t b_unit() const { return std::gcd(b_stride(), b_step); }
  std::int64_t c_unit() const { return std::gcd(n, c_step); }
};

/// Requires a problem that check_problem() accepts.
Shape shape_of(const Problem& problem);

/// Returns "none", or a comma-separated list in the order bias, residual, and one activation.
/// Returns std::nullopt for unknown or repeated words, and for a gated activation with a residual.
std::optional<std::string> canonical_epilogue(const std::string& text);

}  // namespace greta::kernels::gemm
