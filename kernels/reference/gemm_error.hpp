#pragma once

#include <cstdint>
#include <optional>

#include "kernels/model/operation.hpp"
#include "kernels/reference/activation.hpp"

namespace greta::kernels {

/// What reaches one element of C, in FP64.
struct GemmTerms {
  double product = 0;  ///< sum of a b
  double norm = 0;     ///< root of the sum of (a b)^2
  double bias = 0, residual = 0, old = 0;
};

/// How far a dot product that is accumulated in f32 may be off, relative to the root of the sum of
/// its squared products: gamma of GemmErrorModel.
double dot_product_error(std::int64_t length);

/// Value and error bound of one element of C = act(alpha * product + bias + residual + beta * old).
///
/// With u = 2^-24, a dot product of length K that is accumulated in f32 with rounding to nearest,
/// in any order, may be off by gamma * norm, gamma = u min(K + 2, 8) sqrt(K).
/// - Up to K = 6 this is a worst case: the classic bound is (K + 2) u times the sum of |a b|, which
///   is at most sqrt(K) * norm (Cauchy-Schwarz).
/// - Beyond, it is no worst case but holds with overwhelming probability for inputs of mean zero,
/// as
///   random_tensor() makes them. A partial sum of k terms is then about norm * sqrt(k / K), its
///   rounding error at most u times that, independent of the others and of mean zero (Higham and
///   Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41
///   (2019)); K of them add up to about 0.3 u sqrt(K) * norm (root mean square) when the sum runs
///   straight through K, and to no more in any other order. 8 leaves a factor above 20.
/// For inputs that share a sign, or sums that are truncated, it is too small.
/// Each operation of the epilogue adds u times the magnitude of its terms. An activation multiplies
/// what came before by its Lipschitz constant (1.1 for silu, 1.13 for gelu), or by less where it
/// vanishes, and adds its own error, see activation.hpp. Rounding to the output type adds its unit
/// roundoff times the value, and half its smallest number (f32: its smallest normal one, as devices
/// may flush). They may flush products and partial sums as well, |alpha| 2 K 2^-126.
class GemmErrorModel {
 public:
  explicit GemmErrorModel(const Problem& problem);

  Expected expect(const GemmTerms& terms) const;

  bool linear() const { return !activation_; }
  bool has_bias() const { return bias_; }
  bool has_residual() const { return residual_; }
  bool has_old() const { return beta_ != 0; }
  double alpha() const { return alpha_; }
  double beta() const { return beta_; }

  /// The parts of a linear problem's bound: at most product_factor * norm + value_factor *
  /// (sum of the terms' magnitudes) + least.
  double product_factor() const;
  double value_factor() const;
  double least() const;

 private:
  std::optional<ActivationFunction> activation_;
  bool bias_ = false;
  bool residual_ = false;
  double alpha_ = 1, beta_ = 0;
  double gamma_ = 0;
  double flushed_ = 0;
  int roundings_ = 0;  ///< of the epilogue, before the activation
  DType out_;
};

}  // namespace greta::kernels
