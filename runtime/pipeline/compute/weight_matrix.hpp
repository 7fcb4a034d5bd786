#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/model/matrix_format.hpp"
#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

namespace greta::runtime {

/// How rows are quantised for scaled matrices.
struct ScaledInput {
  ScaledFormat format{};
  Tensor scale{};  ///< with ScaledFormat::given_input: f32 [1, 1], by which elements are divided
  /// With it: f32 of 1, [at least as many rows, 1], the scales of rows of the products, as the
  /// matrix's own are those of its weights times the given one.
  Tensor ones{};
};

/// A matrix of weights on a device, [rows, cols], that rows of activations are multiplied by.
struct WeightMatrix {
  /// [rows, cols] of the activations' type. If quantised or scaled: u8 [rows, bytes of a row].
  Tensor values{};
  MatrixFormat format{};
  /// With int4 and int8: [rows, groups], of bf16 if activations are, else f16; with mxfp4 u8.
  /// Scaled: f32 [rows, 1], times input.scale if there is one, or
  /// [ceil(rows / 128), ceil(cols / 128)].
  Tensor scales{};
  Tensor zeros{};  ///< with zero points: u8 [rows, groups]
  /// With MatrixFormat::order: i32 [cols]. Column i of the weights multiplies column order[i] of
  /// activations.
  Tensor order{};
  ScaledInput input{};  ///< scaled: how rows are quantised that it multiplies

  WeightMatrix() = default;
  WeightMatrix(Tensor numbers) : values(std::move(numbers)) {}  // NOLINT: a tensor is one

  explicit operator bool() const { return static_cast<bool>(values); }
  /// Whether it is not of plain numbers.
  bool quantised() const { return !format.plain(); }
  /// Whether products with it have epilogues.
  bool has_epilogues() const { return !format.scaled; }
  /// Returns how rows are quantised that it multiplies, if they are.
  std::optional<ScaledInput> scaled() const {
    return format.scaled ? std::optional(input) : std::nullopt;
  }
  std::int64_t rows() const { return values.shape()[0]; }
  /// Returns rows [first, first + count); `first` is a multiple of 128 with scales of blocks, and
  /// both are whole panels if the matrix has such.
  WeightMatrix slice(std::int64_t first, std::int64_t count) const;
};

/// Creates an uninitialised matrix. `dtype` is that of activations.
WeightMatrix make_matrix(DType dtype, std::int64_t rows, std::int64_t cols,
                         const MatrixFormat& format, const TensorMaker& make);

/// Returns what shares a scale of a product with a matrix of this format.
ScaleSharing sharing_of(const ScaledFormat& format);

/// Rows that are quantised for scaled matrices.
struct ScaledRows {
  ScaledFormat format{};
  Tensor codes{};   ///< u8 [rows, cols]
  Tensor scales{};  ///< f32 [rows, 1], or with scales of blocks [rows, ceil(cols / 128)]

  explicit operator bool() const { return static_cast<bool>(codes); }
};

/// Records the quantisation of rows for scaled matrices: of `x`, or of what `fused` has `quantize`
/// compute of it. `cols` are those of the result.
ScaledRows quantise_rows(Pipeline& on, const Tensor& x, std::int64_t cols, const ScaledInput& input,
                         const QuantizeOptions& fused = {});

/// Records C = A W^T for rows of the matrix's format.
Result<void> multiply(Pipeline& on, const ScaledRows& a, const WeightMatrix& w, const Tensor& c);

/// What a product does with its sums. Products with quantised weights do one of these at most,
/// those with numbers a bias and one of the others.
struct ProductEpilogue {
  Tensor bias{};       ///< [columns of C] of C's type, which is added; empty: none
  Tensor residual{};   ///< as C, which is added; empty: none
  bool gated = false;  ///< C = silu(gate) * up, of products with rows of gates, then of ups

  explicit operator bool() const { return bias || residual || gated; }
};

/// What a product does with the rows of A first.
struct ProductPrologue {
  Tensor norm_weight{};  ///< of a norm [columns of A]; empty: nothing
  float epsilon = 0;     ///< of the norm

  explicit operator bool() const { return static_cast<bool>(norm_weight); }
};

/// Returns the options of a product with rows of weights: C = A W^T.
GemmOptions by_weight_rows();

/// Records C = A W^T, with an epilogue unless the matrix is scaled, and a prologue unless it is
/// scaled or its columns are reordered. Columns of A are gathered first for a matrix whose own are
/// reordered. For a scaled matrix, rows of A are quantised first as WeightMatrix::input says.
Result<void> multiply(Pipeline& on, const Tensor& a, const WeightMatrix& w, const Tensor& c,
                      const ProductEpilogue& epilogue = {}, const ProductPrologue& prologue = {});

/// Matrices that the same rows are multiplied by, one after the other: consecutive ones of the same
/// format are one matrix, so that one launch multiplies by them.
struct Projection {
  std::vector<WeightMatrix> segments;

  Projection() = default;
  Projection(WeightMatrix whole) { segments.push_back(std::move(whole)); }  // NOLINT
  Projection(Tensor whole) : Projection(WeightMatrix(std::move(whole))) {}  // NOLINT

  /// Returns the rows of all segments.
  std::int64_t rows() const;
  /// Returns whether it is one matrix of numbers, which `gemm` can fuse with what comes before and
  /// after it.
  bool dense() const { return segments.size() == 1 && !segments.front().quantised(); }
  /// Returns how rows are quantised for all segments, if these are scaled alike.
  std::optional<ScaledInput> scaled() const;
  /// Returns rows [first, first + count), which are of one segment. Throws Error otherwise.
  WeightMatrix slice(std::int64_t first, std::int64_t count) const;
};

/// A part of a projection.
struct ProjectionPart {
  std::int64_t rows = 0;
  MatrixFormat format{};
};

/// Creates an uninitialised projection of these parts.
Projection make_projection(DType dtype, std::int64_t cols, const std::vector<ProjectionPart>& parts,
                           const TensorMaker& make);

}  // namespace greta::runtime
