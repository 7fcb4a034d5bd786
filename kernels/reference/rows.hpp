#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/tensor.hpp"
#include "kernels/reference/parallel.hpp"
#include "kernels/reference/roundoff.hpp"

/// What the references of operations on rows share.
namespace greta::kernels::rows {

using reference::u;

/// Merges of partial sums that a sum of n elements passes through: rounds of a thread, of which
/// there are at most max(8, n / 256) (the spaces' constraint "rounds"), then a tree over at most
/// 1024 threads, and one over at most 128 parts of a row.
double merges(std::int64_t n);

/// Relative error of the f32 sum of n numbers of one sign, whatever they are: u for each addition
/// on the way of a number, and for each product where sums are rescaled. A thread adds up to 64
/// numbers as eight running sums and a tree, at most 11 additions, and then come the merges.
double sum_error(std::int64_t n);

/// A row of a tensor in FP64.
std::vector<double> row_of(const HostTensor& tensor, std::int64_t row);

/// f(row) for every row, on all cores.
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
