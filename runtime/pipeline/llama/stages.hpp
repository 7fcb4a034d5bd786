#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/pipeline/llama/trace.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

/// A Llama's stages in FP64, one by one: what LlamaReference puts together, and LlamaTraceCheck
/// computes again. Each as its definition reads, without any of the kernels' or their references'
/// code.
namespace greta::runtime::stages {

/// Weights in FP64, rounded to a type first where there is one.
class Weights {
 public:
  explicit Weights(std::optional<DType> rounding) : rounding_(rounding) {}
  std::vector<double> row(const WeightView& weights, std::int64_t row) const;

 private:
  std::optional<DType> rounding_;
};

/// x W^T: a row of the result for each of x, a column for each row of W. `norms`, where it is asked
/// for: the root of the sum of each element's squared products.
TraceMatrix multiply(const Weights& weights, const WeightView& matrix, const TraceMatrix& x,
                     TraceMatrix* norms = nullptr);

/// One over the root of the mean of a row's squares + epsilon.
double rms_factor(const TraceMatrix& x, std::int64_t row, double epsilon);
/// Each row times its factor, times the weights.
TraceMatrix rms_norm(const Weights& weights, const WeightView& gains, const TraceMatrix& x,
                     double epsilon);

/// The other element of the pair that element `index` of a head belongs to.
std::int64_t rope_partner(const LlamaConfig& config, std::int64_t index);
/// Rotates every head of tokens at positions first …; `sizes`, where it is asked for:
/// |a cos| + |b sin|.
TraceMatrix rope(const LlamaConfig& config, const std::vector<double>& frequencies,
                 const TraceMatrix& x, std::int64_t first, TraceMatrix* sizes = nullptr);

/// One query's attention to keys 0 … n-1.
struct Attended {
  std::vector<double> scores;   ///< scaled
  std::vector<double> norms;    ///< root of the sum of a score's squared products, scaled
  std::vector<double> weights;  ///< they add up to 1
  std::vector<double> result;   ///< head_dim
};
/// Keys and values of one KV head: `stride` elements from one to the next. Scores are scaled by
/// 1 / sqrt(dim).
Attended attend(const double* query, const double* keys, const double* values, std::int64_t stride,
                std::int64_t n, std::int64_t dim);

/// gate / (1 + e^-gate) * up
double silu_mul(double gate, double up);

}  // namespace greta::runtime::stages
