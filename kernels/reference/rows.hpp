#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/parallel.hpp"
#include "kernels/model/tensor.hpp"
#include "kernels/reference/roundoff.hpp"

/// Shared parts of the references of row operations.
namespace greta::kernels::rows {

using reference::u;

/// Returns the maximum number of merges of partial sums in a sum of n elements: the rounds of a
/// thread, of which there are at most max(8, n / 256) (constraint "rounds" of the spaces), a tree
/// over at most 1024 threads (10), and a tree over at most 128 parts of a row (7).
double merges(std::int64_t n);

/// Returns the relative error bound of an f32 sum of n numbers of the same sign: u for each
/// addition that a number takes part in, and for each product where sums are rescaled. A thread
/// adds up to 64 numbers as eight running sums and a tree, at most 11 additions, before the merges.
double sum_error(std::int64_t n);

/// Returns a row of a tensor in FP64.
std::vector<double> row_of(const HostTensor& tensor, std::int64_t row);

/// Returns f(row) for every row, computed on all cores.
template <typename F>
auto for_each_row(std::int64_t rows, const F& f) {
  std::vector<decltype(f(std::int64_t{0}))> results(static_cast<std::size_t>(rows));
  parallel_parts(rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      results[static_cast<std::size_t>(row)] = f(row);
    }
  });
  return results;
}

}  // namespace greta::kernels::rows
