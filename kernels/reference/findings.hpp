#pragma once

#include <cstdint>
#include <string>

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// Collects what a reference finds in one output matrix, and turns it into a verdict.
class Findings {
 public:
  Findings(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {}

  /// NaN and Inf anywhere, and a tensor of the wrong size.
  void find_non_finite(const HostTensor& output);
  /// Judges one element.
  void compare(std::int64_t row, std::int64_t col, double got, double want, double bound);
  /// A failure that no single element shows.
  void reject(std::string what, double error, double bound);

  bool passed() const { return wrong_ == 0 && detail_.empty(); }
  /// So many wrong elements that more would tell nothing.
  bool plenty() const { return wrong_ >= 1000; }
  Verdict verdict(std::string method) const;

 private:
  std::int64_t rows_, cols_;
  std::int64_t checked_ = 0;
  std::int64_t wrong_ = 0;
  double error_ = 0, bound_ = 0;  ///< of the largest error / bound
  std::string detail_;            ///< of a failure that is not a wrong element
  std::string worst_;             ///< the worst wrong element
};

}  // namespace greta
