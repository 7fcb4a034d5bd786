#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "kernels/model/problem.hpp"
#include "kernels/templates/gemm/row_groups.hpp"

namespace greta::kernels::gemm {

/// The dimensions, types and attributes of a GEMM problem.
struct Shape : RowGroups {
  std::int64_t n = 0, k = 0;
  /// Of a batch: elements from one matrix to the next; 0 for a B that all products have.
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
  /// Leading dimensions in elements, the residual's that of C; 0: rows are packed.
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  /// Elements from a multiple of 128 bytes to the first element, the residual's that of C.
  std::int64_t a_offset = 0, b_offset = 0, c_offset = 0;
  DType in = DType::f32;
  DType out = DType::f32;
  bool a_along_k = true;   ///< K is contiguous in A: layouts nn and nt
  bool b_along_k = false;  ///< K is contiguous in B: layouts nt and tt
  bool panels = false;     ///< B's rows lie in panels of 16 (attribute packing, weight_panels.hpp)
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

  /// Returns the number of columns of op(A) op(B).
  std::int64_t products() const { return gated ? 2 * n : n; }
  /// Return the elements of a line of A and of B as stored, and the number of lines.
  std::int64_t a_length() const { return a_along_k ? k : m; }
  std::int64_t b_length() const { return b_along_k ? k : products(); }
  std::int64_t a_lines() const { return a_along_k ? m : k; }
  std::int64_t b_lines() const { return b_along_k ? products() : k; }
  /// Return the leading dimensions of A, B and C as stored, in elements.
  std::int64_t a_stride() const { return lda > 0 ? lda : a_length(); }
  std::int64_t b_stride() const { return ldb > 0 ? ldb : b_length(); }
  std::int64_t c_stride() const { return ldc > 0 ? ldc : n; }
  /// Return what divides the lengths of the lines of A, B and C, and where all of them begin, in
  /// elements.
  std::int64_t a_unit() const { return unit(a_length(), a_stride(), a_step, a_offset); }
  std::int64_t b_unit() const { return unit(b_length(), b_stride(), b_step, b_offset); }
  std::int64_t c_unit() const { return unit(n, c_stride(), c_step, c_offset); }

 private:
  static std::int64_t unit(std::int64_t length, std::int64_t stride, std::int64_t step,
                           std::int64_t offset) {
    return std::gcd(std::gcd(length, stride), std::gcd(step, offset));
  }
};

/// Requires a problem that check_problem() accepts.
Shape shape_of(const Problem& problem);

/// Returns "none", or a comma-separated list in the order bias, residual, and one activation.
/// Returns std::nullopt for unknown or repeated words, and for a gated activation with a residual.
std::optional<std::string> canonical_epilogue(const std::string& text);

}  // namespace greta::kernels::gemm
