#pragma once

#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/reference/elements.hpp"

/// Shared parts of the references of row norms. u = 2^-24; `merges` and `sum_error` are those of
/// rows.hpp.
namespace greta::kernels::rows {

/// A value and the error bound of its evaluation in f32.
struct Value {
  double value = 0;
  double error = 0;
};

/// Describes an output with the problem's rows and columns.
TensorSpec output(const Problem& problem, const char* name);

/// Y = x / sqrt(mean(x^2) + epsilon) * weight, x = X or X + residual (rounded: error u |x|). The
/// relative error of the inverse root is at most (sum_error + 5u) / 2 + 4u: 5u for the square, the
/// division, the sum with epsilon and twice the residual's rounding, and 4u for an inverse root
/// within 2 ulp. The two products add 2u, and the rounding of x adds u |x|. Devices may flush
/// values below 2^-126: x and each product.
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

/// Y = x / sqrt(v + epsilon) * weight + bias, x = X - m, where m is the mean and v the variance of
/// a row. D is the largest |x| of the row and A the mean of |x|. Kernels first subtract one element
/// of the row from all others; the differences are at most 2D. The error bound consists of:
/// - an element: 2u D + u |x| for two roundings.
/// - the mean of the differences: (14 + merges) u (A + D). A thread does at most 11 additions.
///   Chan's formula then rounds the mean once per merge, and its steps towards the mean add up to
///   A.
/// - the variance: (sum_error + 3u) v + (4 + 2 merges) u D A plus the square of the mean's error.
///   The second term holds the errors of the elements and of the merged distances: an error of at
///   most c u D in an element adds twice its distance times that, and the distances have the mean
///   A.
/// - the inverse root: half of the variance's relative error, 1.5u for the division and the sum
///   with epsilon, and 4u for an inverse root within 2 ulp.
/// - the products with the inverse root and the weight: 2u. Adding the bias: u.
/// Devices may flush values below 2^-126. Each rounding of the mean and of an element, each product
/// and the sum with the bias add that much.
class LayerNorm {
 public:
  LayerNorm(const Problem& problem, const std::vector<HostTensor>& inputs);

  DType out() const { return out_; }
  Value normalised(std::int64_t row, std::int64_t col) const;

 private:
  struct Moments {
    double first = 0, mean = 0;  ///< mean of the differences to the first element
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

/// Y = y / sqrt(mean(y^2) + epsilon) * gain, y = LayerNorm's result with error e. The relative
/// error of the inverse root is at most (mean(2 |y| e + e^2) / (mean(y^2) + epsilon) + sum_error +
/// 5u) / 2, and 4u for an inverse root within 2 ulp. The products add 2u.
class LayerRmsNorm {
 public:
  LayerRmsNorm(const Problem& problem, const std::vector<HostTensor>& inputs);

  DType out() const { return layer_.out(); }
  Value normalised(std::int64_t row, std::int64_t col) const;

 private:
  LayerNorm layer_;
  KeptTensor gain_;
  std::vector<Value> factors_;  ///< of each row; errors are relative
};

}  // namespace greta::kernels::rows
