#pragma once

#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/reference/elements.hpp"

/// What the references of norms of rows share. u = 2^-24; `merges` and `sum_error` are those of
/// rows.hpp.
namespace greta::kernels::rows {

/// A value, and how far f32 arithmetic may be from it.
struct Value {
  double value = 0;
  double error = 0;
};

/// An output of the problem's rows and columns.
TensorSpec output(const Problem& problem, const char* name);

/// x = X, or X + residual where the problem has one (rounded: u |x|), over the root of the mean of
/// its squares + epsilon. The root's relative error is at most half of (sum_error + 5u: square,
/// division and sum, and the residual's rounding twice), and 4u of an inverse root within 2 ulp; 2u
/// of products come on top, and u |x| again. Devices may flush what is below 2^-126 to 0: x, and
/// each product.
class RmsNorm {
 public:
  RmsNorm(const Problem& problem, const std::vector<HostTensor>& inputs);

  DType out() const { return out_; }
  Value element(std::int64_t row, std::int64_t col) const;
  Value normalised(std::int64_t row, std::int64_t col) const;

 private:
  KeptTensor x_, residual_, weight_;
  double epsilon_;
  DType out_;
  std::vector<double> factors_;  ///< of each row
};

/// x = X less its mean m, over the root of the variance + epsilon. With D the largest |x| of a row
/// and A the mean of |x|, an element of the row is taken from all others first, which leaves at
/// most 2D:
/// - an element is off by 2u D + u |x|, two roundings;
/// - the mean of what is left by (14 + merges) u (A + D): at most 11 additions in a thread, then
/// Chan's
///   formula, whose mean is rounded once in each merge, and whose steps towards it add up to A;
/// - the variance v by (sum_error + 3u) v, the elements' own errors and those of the distances that
///   are merged, (4 + 2 merges) u D A, and the square of the mean's: each error of at most c u D of
///   an element adds twice its distance times that, and distances have the mean A;
/// - an inverse root within 2 ulp by 4u, behind it a division and a sum, half of 3u;
/// - 3u for the products with it and the weight, and u for adding the bias.
/// Devices may flush what is below 2^-126 to 0: each rounding of the mean and of an element, each
/// product and the sum with the bias add as much.
class LayerNorm {
 public:
  LayerNorm(const Problem& problem, const std::vector<HostTensor>& inputs);

  DType out() const { return out_; }
  Value normalised(std::int64_t row, std::int64_t col) const;

 private:
  struct Moments {
    double first = 0, mean = 0;  ///< the mean is of what is left without the first element
    double factor = 0;
    double distance_error = 0;  ///< absolute, of an element's distance from the mean
    double factor_error = 0;    ///< relative
  };

  Moments moments_of(std::int64_t row) const;

  KeptTensor x_, weight_, bias_;
  double epsilon_;
  DType out_;
  std::vector<Moments> moments_;  ///< of each row
};

/// y = LayerNorm's, off by e, over the root of the mean of its squares + epsilon. The root's
/// relative error is at most half of (2 mean(|y| e) / (mean(y^2) + epsilon) + sum_error + 5u), and
/// 4u of an inverse root within 2 ulp; 2u of products come on top.
class LayerRmsNorm {
 public:
  LayerRmsNorm(const Problem& problem, const std::vector<HostTensor>& inputs);

  DType out() const { return layer_.out(); }
  Value normalised(std::int64_t row, std::int64_t col) const;

 private:
  LayerNorm layer_;
  KeptTensor gain_;
  std::vector<Value> factors_;  ///< of each row; their errors are relative
};

}  // namespace greta::kernels::rows
