#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/model/reference.hpp"
#include "runtime/pipeline/llama/stages.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"

/// Error bounds of a Llama's stages, as LlamaTraceCheck states them.
namespace greta::runtime {

/// A dot product in FP64 and what bounds its error.
struct TracedProduct {
  double value = 0;
  double norm = 0;      ///< root of the sum of squared products
  double relative = 0;  ///< error of a norm of the row in the same launch
  double absolute = 0;  ///< further error
};

class TraceBounds {
 public:
  explicit TraceBounds(const TraceTypes& types) : types_(types) {}

  /// Returns the relative error by which a norm of rows of this length changes the products with
  /// them in the same launch: norm_factor_error() and the rounding of epsilon.
  static double norm_of_factors(std::int64_t length);
  /// Bound of a dot product of this length, with a residual if set.
  Expected product(DType type, std::int64_t length, const TracedProduct& product,
                   std::optional<double> residual = std::nullopt) const;
  /// Returns a product with a bias, which may have been stored before the addition. It is an
  /// operand of the functions here as the product alone is.
  TracedProduct biased(std::int64_t length, const TracedProduct& product, double bias) const;
  /// Bound of silu(gate) * up in the launch that computes both.
  Expected gated(std::int64_t length, const TracedProduct& gate, const TracedProduct& up) const;
  /// The same of a gate and an up that are stored.
  Expected gated(double gate, double up) const;
  /// The same before it is rounded: the errors of the two products, which are independent of those
  /// of other elements, and what the activation adds, which need not be.
  struct Gated {
    double value = 0, independent = 0, common = 0;
  };
  static Gated gated_sum(std::int64_t length, const TracedProduct& gate, const TracedProduct& up);
  /// Bound of rows::RmsNorm, plus the rounding of epsilon to f32, and if `unrounded` what rounding
  /// the rows to the activations' type changes.
  Expected norm(double value, double factor, double gain, std::int64_t length,
                bool unrounded = false) const;
  /// Bound of a rotation, stored in this type; `size` is |a cos| + |b sin|. `relative` is the error
  /// of a and b, if they are not stored.
  Expected rope(DType type, double value, double size, double relative = 0) const;
  /// Returns the relative error of a norm of rows of this length before it is rounded.
  static double norm_error(std::int64_t length);
  /// The same; `unrounded`: of rows that are rounded to the activations' type where they are known.
  double norm_error(std::int64_t length, bool unrounded) const;
  /// Returns a relative error of silu(gate) * up before it is rounded.
  static double silu_error(double gate);
  /// Bound of a weight of experts, the share of an expert's exponential in that of all logits of
  /// `summed`: see ExpertCheck.
  static Expected expert_weight(double value, double logit, std::vector<double> summed);
  /// Bound of the sigmoid of a logit, as ExpertCheck states it.
  static Expected sigmoid(double logit);
  /// Bound of a value that is rounded in f32 once before it is stored.
  static Expected once(DType type, double value);
  /// Bound of attention_reference().
  Expected attention(const stages::Attended& attended, const double* values, std::int64_t stride,
                     std::int64_t dim, std::int64_t col) const;
  /// Bounds of the weight of each key: of attention to values that are 1 for this key and 0 for
  /// others.
  std::vector<Expected> attention_weights(const stages::Attended& attended, std::int64_t dim) const;

 private:
  /// Returns the relative error of the exponential of each score.
  std::vector<double> exponential_errors(const stages::Attended& attended, std::int64_t dim) const;
  /// Bound of a sum of values with the weights of `attended`. `errors` is the sum of the weights'
  /// errors, `spread` that of their products with |value|, `norm` the root of the sum of squared
  /// products.
  Expected weighted_sum(const stages::Attended& attended, double value, double errors,
                        double spread, double norm) const;

  TraceTypes types_;
};

/// A norm of all rows.
class NormStage {
 public:
  NormStage(const stages::Weights& weights, const WeightView& gains, const TraceMatrix& x,
            double epsilon);

  const TraceMatrix& values() const { return want_; }
  Expected expected(const TraceBounds& bounds, std::int64_t row, std::int64_t col,
                    bool unrounded = false) const;

 private:
  TraceMatrix want_;
  std::vector<double> gains_, factors_;
};

}  // namespace greta::runtime
