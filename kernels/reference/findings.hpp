#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "kernels/model/operation.hpp"
#include "kernels/reference/parallel.hpp"

namespace greta::kernels {

/// Collects what a reference finds in one output matrix, and turns it into a verdict.
class Findings {
 public:
  Findings(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {}

  /// Counts NaN and Inf in some rows of the output.
  void scan(const HostTensor& output, std::int64_t first_row, std::int64_t last_row);
  /// Judges one element. An infinity that is expected must be met exactly, and where NaN is
  /// expected nothing else is right; callers for whom there are none scan() first.
  void compare(std::int64_t row, std::int64_t col, double got, double want, double bound);
  /// Counts elements that are known to be right and no worse than ratio() says.
  void pass(std::int64_t elements) { checked_ += elements; }
  /// A failure that no single element shows.
  void reject(std::string what, double error, double bound);
  /// Takes over what another one found in later rows.
  void merge(const Findings& later);

  bool finite() const { return first_bad_ < 0; }
  bool passed() const { return finite() && wrong_ == 0 && detail_.empty(); }
  /// An error of at most so many times its bound is right and changes nothing; below 0: none yet.
  double ratio() const { return std::min(ratio_, 1.0); }
  /// So many wrong elements that more would tell nothing.
  bool plenty() const { return wrong_ >= 1000; }
  Verdict verdict(std::string method) const;

 private:
  bool keep_worse(double error, double bound);

  std::int64_t rows_, cols_;
  std::int64_t nan_ = 0, infinite_ = 0, first_bad_ = -1;
  std::int64_t checked_ = 0, wrong_ = 0;
  double ratio_ = -1;             ///< the largest error / bound; none yet: below 0
  double error_ = 0, bound_ = 0;  ///< its error and bound
  std::string worst_;             ///< the wrong element that has it
  std::string detail_;            ///< of a failure that is not a wrong element
};

/// What body(first, last, findings) finds of an output in consecutive parts of 0 … count-1, on all
/// cores.
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
