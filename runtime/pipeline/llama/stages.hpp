#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/pipeline/llama/trace.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

/// The stages of a Llama in FP64. LlamaReference combines them, and LlamaTraceCheck recomputes
/// them. They follow their definitions and share no code with the kernels or their references.
namespace greta::runtime::stages {

/// Reads weights in FP64, optionally rounded to a type first, as a device with activations of this
/// type stores them: quantised weights stay exact unless they are decoded there, and scales beside
/// integers have the type of scales.
class Weights {
 public:
  /// `rounded_products`: products may round quantised weights that are stored exactly.
  explicit Weights(std::optional<DType> rounding, bool rounded_products = false)
      : rounding_(rounding), rounded_products_(rounded_products) {}
  std::vector<double> row(const WeightView& weights, std::int64_t row) const;
  /// Returns the error of products with rounded weights, relative to the root of the sum of squared
  /// products (rounding_of_weights()); 0 if they are not.
  double rounding_of_products(const WeightView& weights) const;

 private:
  std::optional<DType> rounding_;
  bool rounded_products_;
};

/// Returns x W^T: one row per row of x, one column per row of W. If set, `norms` receives the root
/// of the sum of the squared products of each element.
TraceMatrix multiply(const Weights& weights, const WeightView& matrix, const TraceMatrix& x,
                     TraceMatrix* norms = nullptr);

/// Rows as devices quantise them for a scaled matrix, with a scale for each row or for 128 columns.
struct QuantisedRows {
  TraceMatrix values;  ///< numbers times scales
  /// How much a device's may differ: 6u for a scale in f32, and the distance to the neighbour where
  /// the quotient is within 12u of the border between two numbers (quantize_reference()).
  TraceMatrix errors;
};
/// `relative`: the error of x, by which a device's quotients may differ further.
QuantisedRows quantised_rows(const ScaledWeights& by, const TraceMatrix& x, double relative = 0);

/// Returns the sums of the products' sizes, |x| |W|^T.
TraceMatrix multiply_sizes(const Weights& weights, const WeightView& matrix, const TraceMatrix& x);

/// Returns 1 / sqrt(mean of the row's squares + epsilon).
double rms_factor(const TraceMatrix& x, std::int64_t row, double epsilon);
/// Returns each row times its factor, times the weights.
TraceMatrix rms_norm(const Weights& weights, const WeightView& gains, const TraceMatrix& x,
                     double epsilon);

/// The same of each head of `gains.cols` elements.
TraceMatrix head_norm(const Weights& weights, const WeightView& gains, const TraceMatrix& x,
                      double epsilon);
/// Adds a bias, of one row, to each row.
void add_bias(const Weights& weights, const WeightView& bias, TraceMatrix& x);

/// Returns the index of the other element in the rope pair of element `index`.
std::int64_t rope_partner(const LlamaConfig& config, std::int64_t index);
/// Rotates every head of tokens at positions from `first` on. If set, `sizes` receives |a cos| + |b
/// sin|.
TraceMatrix rope(const LlamaConfig& config, const std::vector<double>& frequencies,
                 const TraceMatrix& x, std::int64_t first, TraceMatrix* sizes = nullptr);

/// One query's attention to keys 0 to n-1.
struct Attended {
  std::vector<double> scores;   ///< scaled
  std::vector<double> norms;    ///< root of the sum of a score's squared products, scaled
  std::vector<double> weights;  ///< sum to 1
  std::vector<double> result;   ///< head_dim
};
/// Computes attention to the keys and values of one KV head, which are `stride` elements apart.
/// Scores are scaled by 1 / sqrt(dim).
Attended attend(const double* query, const double* keys, const double* values, std::int64_t stride,
                std::int64_t n, std::int64_t dim);

/// The same without a result for n keys with equal scores of 0.
Attended attend_equally(std::int64_t n);

/// Returns gate / (1 + e^-gate) * up.
double silu_mul(double gate, double up);

}  // namespace greta::runtime::stages
