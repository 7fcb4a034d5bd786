#include "kernels/reference/findings.hpp"

#include <fmt/format.h>

#include <cmath>

namespace greta {

void Findings::find_non_finite(const HostTensor& output) {
  if (output.spec.rows != rows_ || output.spec.cols != cols_ ||
      output.data.size() != output.spec.bytes()) {
    reject(fmt::format("the output is not {} x {}", rows_, cols_), 1e300, 0);
    return;
  }
  std::int64_t nan = 0, infinite = 0, first = -1;
  for (std::int64_t i = 0; i < rows_ * cols_; ++i) {
    const double value = output.at(static_cast<std::size_t>(i));
    if (std::isfinite(value)) continue;
    ++(std::isnan(value) ? nan : infinite);
    if (first < 0) first = i;
  }
  if (first < 0) return;
  reject(fmt::format("{} NaN and {} infinite of {} elements, the first at ({}, {})", nan, infinite,
                     rows_ * cols_, first / cols_, first % cols_),
         1e300, 0);
}

void Findings::compare(std::int64_t row, std::int64_t col, double got, double want, double bound) {
  const double error = std::abs(got - want);
  const bool wrong = !(error <= bound);
  wrong_ += wrong;
  const bool worse = checked_++ == 0 || error * bound_ > error_ * bound;
  if (!worse) return;
  error_ = error;
  bound_ = bound;
  if (!wrong) return;
  worst_ = fmt::format("element ({}, {}) is {:.9g}, expected {:.9g} within {:.3g}", row, col, got,
                       want, bound);
}

void Findings::reject(std::string what, double error, double bound) {
  if (!detail_.empty()) return;
  detail_ = std::move(what);
  if (checked_ > 0) return;
  error_ = error;
  bound_ = bound;
}

Verdict Findings::verdict(std::string method) const {
  Verdict verdict;
  verdict.passed = passed();
  verdict.error = error_;
  verdict.bound = bound_;
  verdict.method = std::move(method);
  verdict.detail = detail_;
  if (wrong_ > 0) {
    if (!verdict.detail.empty()) verdict.detail += "; ";
    verdict.detail +=
        fmt::format("{}; {} of {} checked elements are wrong", worst_, wrong_, checked_);
  }
  return verdict;
}

}  // namespace greta
