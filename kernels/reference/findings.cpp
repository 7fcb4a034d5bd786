#include "kernels/reference/findings.hpp"

#include <fmt/format.h>

#include <cmath>

namespace greta::kernels {
namespace {

std::string shown(double number) {
  return std::isnan(number) ? "NaN" : fmt::format("{:.9g}", number);
}

}  // namespace

bool accepts(const Expected& expected, double got) {
  if (std::isnan(expected.value)) return std::isnan(got) || std::isinf(expected.bound);
  if (std::isinf(expected.value)) return got == expected.value;
  return std::abs(got - expected.value) <= expected.bound;
}

std::string Findings::place(std::int64_t row, std::int64_t col) const {
  return rows_ == 1 ? fmt::format("{}", col) : fmt::format("({}, {})", row, col);
}

void Findings::scan(const HostTensor& output, std::int64_t first_row, std::int64_t last_row) {
  for (std::int64_t i = first_row * cols_; i < last_row * cols_; ++i) {
    const double value = output.at(static_cast<std::size_t>(i));
    if (std::isfinite(value)) continue;
    ++(std::isnan(value) ? nan_ : infinite_);
    if (first_bad_ < 0) first_bad_ = i;
  }
}

/// Records error and bound if error / bound is the largest so far. Returns whether it is.
bool Findings::keep_worse(double error, double bound) {
  const double ratio = bound > 0 ? error / bound : (error > 0 ? 1e300 : 0);
  if (ratio <= ratio_) return false;
  ratio_ = ratio;
  error_ = error;
  bound_ = bound;
  return true;
}

void Findings::compare(std::int64_t row, std::int64_t col, double got, double want, double bound) {
  const bool same = got == want || (std::isnan(got) && std::isnan(want));
  const double difference = same ? 0 : std::abs(got - want);
  const double error = std::isfinite(difference) ? difference : 1e300;
  const bool wrong = !accepts({want, bound}, got);
  ++checked_;
  wrong_ += wrong;
  if (!keep_worse(error, bound) || !wrong) return;
  worst_ = fmt::format("element {} is {}, expected {} within {:.3g}", place(row, col), shown(got),
                       shown(want), bound);
}

void Findings::reject(std::string what, double error, double bound) {
  keep_worse(error, bound);
  if (detail_.empty()) detail_ = std::move(what);
}

void Findings::merge(const Findings& later) {
  nan_ += later.nan_;
  infinite_ += later.infinite_;
  if (first_bad_ < 0) first_bad_ = later.first_bad_;
  checked_ += later.checked_;
  wrong_ += later.wrong_;
  if (later.ratio_ >= 0 && keep_worse(later.error_, later.bound_)) worst_ = later.worst_;
  if (detail_.empty()) detail_ = later.detail_;
}

Verdict Findings::verdict(std::string method) const {
  Verdict verdict;
  verdict.passed = passed();
  verdict.method = std::move(method);
  if (!finite()) {
    verdict.error = 1e300;
    verdict.detail =
        fmt::format("{} NaN and {} infinite of {} elements, the first at {}", nan_, infinite_,
                    rows_ * cols_, place(first_bad_ / cols_, first_bad_ % cols_));
    return verdict;
  }
  verdict.error = error_;
  verdict.bound = bound_;
  verdict.detail = detail_;
  if (wrong_ > 0) {
    if (!verdict.detail.empty()) verdict.detail += "; ";
    verdict.detail +=
        plenty() && checked_ < rows_ * cols_
            ? fmt::format("{}; at least {} of {} elements are wrong", worst_, wrong_, rows_ * cols_)
            : fmt::format("{}; {} of {} checked elements are wrong", worst_, wrong_, checked_);
  }
  return verdict;
}

}  // namespace greta::kernels
