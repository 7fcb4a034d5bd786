#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "kernels/model/operation.hpp"
#include "kernels/model/parallel.hpp"

namespace greta::kernels {

/// Returns whether a correct kernel may give this number: one within the bound of a finite value,
/// an infinity exactly, NaN for NaN, and anything for reference::anything.
bool accepts(const Expected& expected, double got);

/// Collects the errors in one output matrix and produces a verdict.
class Findings {
 public:
  Findings(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {}

  /// Counts NaN and Inf in rows first_row to last_row - 1 of the output.
  void scan(const HostTensor& output, std::int64_t first_row, std::int64_t last_row);
  /// Checks one element by accepts(). Callers that expect neither NaN nor infinities scan() first.
  void compare(std::int64_t row, std::int64_t col, double got, double want, double bound);
  /// Counts elements that are known to be within ratio() times their bounds.
  void pass(std::int64_t elements) { checked_ += elements; }
  /// Records a failure that is not caused by a single element.
  void reject(std::string what, double error, double bound);
  /// Adds the findings of later rows.
  void merge(const Findings& later);

  bool finite() const { return first_bad_ < 0; }
  bool passed() const { return finite() && wrong_ == 0 && detail_.empty(); }
  /// Returns the largest error / bound so far, at most 1, or a negative number if there is none.
  /// Errors up to this ratio do not change the verdict.
  double ratio() const { return std::min(ratio_, 1.0); }
  /// Returns whether there are so many wrong elements that the check can stop.
  bool plenty() const { return wrong_ >= 1000; }
  Verdict verdict(std::string method) const;

 private:
  /// The column where there is one row, else "(row, column)".
  std::string place(std::int64_t row, std::int64_t col) const;
  bool keep_worse(double error, double bound);

  std::int64_t rows_, cols_;
  std::int64_t nan_ = 0, infinite_ = 0, first_bad_ = -1;
  std::int64_t checked_ = 0, wrong_ = 0;
  double ratio_ = -1;             ///< largest error / bound; negative: none yet
  double error_ = 0, bound_ = 0;  ///< of the element with that ratio
  std::string worst_;             ///< describes that element if it is wrong
  std::string detail_;            ///< describes a failure of no single element
};

/// Calls body(first, last, findings) for consecutive parts of 0 to count - 1 on all cores, and
/// returns the merged findings.
template <typename Body>
Findings find_in_parts(std::int64_t rows, std::int64_t cols, std::int64_t count, const Body& body) {
  std::mutex mutex;
  std::map<std::int64_t, Findings> parts;
  parallel_parts(count, [&](std::int64_t first, std::int64_t last) {
    Findings part(rows, cols);
    body(first, last, part);
    const std::lock_guard lock(mutex);
    parts.emplace(first, std::move(part));
  });
  Findings all(rows, cols);
  for (const auto& [first, part] : parts) all.merge(part);
  return all;
}

}  // namespace greta::kernels
