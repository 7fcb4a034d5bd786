#pragma once

#include <cstdint>
#include <optional>

#include "kernels/model/operation.hpp"
#include "kernels/reference/activation.hpp"

namespace greta::kernels {

/// The terms of one element of the product and of what is added to it, in FP64.
struct GemmTerms {
  double product = 0;  ///< sum of a b
  double norm = 0;     ///< root of the sum of (a b)^2
  double bias = 0, residual = 0, old = 0;
  double factor = 1;  ///< what a norm multiplies the row of A by, besides the weight
  double size = 0;    ///< sum of |b|; with a norm only
};

/// Returns the error bound of a dot product accumulated in f32, relative to the root of the sum of
/// its squared products: gamma of GemmErrorModel.
double dot_product_error(std::int64_t length);

/// Returns the relative error of what kernels of gemm's prologue rmsnorm multiply sums over rows of
/// this length by, and of that product (GemmErrorModel).
double norm_factor_error(std::int64_t length);

/// Computes the value and error bound of an element C = act(alpha * product + bias + residual +
/// beta * old), or with a gated activation C = act(gate) * up, gate and up = alpha * product +
/// bias.
///
/// With u = 2^-24, the error bound of a dot product of length K accumulated in f32 with rounding to
/// nearest, in any order, is gamma * norm, gamma = u min(K + 2, 8) sqrt(K).
/// - For K <= 6 this is a worst-case bound: the classic bound is (K + 2) u times the sum of |a b|,
///   which is at most sqrt(K) * norm (Cauchy-Schwarz).
/// - For K > 6 it is not a worst-case bound, but holds with overwhelming probability for inputs of
///   mean zero, as random_tensor() makes them. A partial sum of k terms is then about norm * sqrt(k
///   / K), and its rounding error is at most u times that, independent of the others and of mean
///   zero (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci.
///   Comput. 41 (2019)). The root mean square of the sum of K such errors is about 0.3 u sqrt(K) *
///   norm for a sequential sum, and no more for any other order. The factor 8 leaves a margin above
///   20.
/// The bound is too small for inputs that share a sign and for sums that are truncated.
/// Each operation of the epilogue adds u times the magnitudes of the terms. An activation
/// multiplies the error so far by its Lipschitz constant (1.1 for silu, 1.13 for gelu), or by less
/// where it vanishes, and adds its own error (activation.hpp). Rounding to the output type adds its
/// unit roundoff times the value, and half its smallest number (f32: its smallest normal number, as
/// devices may flush). Flushed products and partial sums add |alpha| 2 K 2^-126.
///
/// A gated activation is the product of two factors with errors e and f: |up| e + |act(gate)| f + e
/// f, a rounding, and 2^-126 (|act(gate)| + |up|) for flushed factors.
///
/// A norm's a is x w r, r = 1 / sqrt(mean(x^2) + epsilon). Kernels multiply the sum of x w b by r.
/// - The product x w has one rounding, for which the margins of gamma have room.
/// - The sum of squares is one of positive numbers: u for each addition that a square takes part
///   in. These are at most K, or 128 within a load, max(64, K / 64) of loads (constraint "rounds"),
///   and 96 of threads and slices. Its relative error counts half in r; r adds 2.5u for the
///   quotient and the sum with epsilon, and 4u for an inverse root within 2 ulp. r's product with
///   the sum adds u.
/// - Flushed numbers are multiplied by r, and x w by b as well: r 2^-126 (2 K + sum |b|).
class GemmErrorModel {
 public:
  explicit GemmErrorModel(const Problem& problem);

  /// Without a gated activation.
  Expected expect(const GemmTerms& terms) const;
  /// With a gated activation.
  Expected expect(const GemmTerms& gate, const GemmTerms& up) const;

  /// Allows more of the norm, and a constant: kernels have further errors.
  void allow(double of_norm, double least) {
    gamma_ += of_norm;
    further_least_ += least;
  }

  /// Returns whether C is linear in op(A) and B.
  bool linear() const { return !activation_ && !norm_; }
  bool gated() const { return gated_; }
  bool has_norm() const { return norm_; }
  bool has_bias() const { return bias_; }
  bool has_residual() const { return residual_; }
  bool has_old() const { return beta_ != 0; }
  double alpha() const { return alpha_; }
  double beta() const { return beta_; }

  /// The coefficients of a linear problem's bound, which is at most product_factor * norm +
  /// value_factor * (sum of the terms' magnitudes) + least.
  double product_factor() const;
  double value_factor() const;
  double least() const;

 private:
  /// A value before the activation, and its error without flushed numbers.
  struct Sum {
    double value = 0, error = 0;
  };
  Sum sum(const GemmTerms& terms) const;
  /// Returns the error by flushed products and partial sums.
  double flushed(const GemmTerms& terms) const;

  std::optional<ActivationFunction> activation_;
  bool bias_ = false;
  bool residual_ = false;
  double alpha_ = 1, beta_ = 0;
  double gamma_ = 0;
  double further_least_ = 0;
  double length_ = 0;  ///< K
  bool gated_ = false;
  bool norm_ = false;
  double factor_error_ = 0;  ///< relative, of a norm's factor and the product with it
  int roundings_ = 0;        ///< of the epilogue, before the activation
  DType out_;
};

}  // namespace greta::kernels
