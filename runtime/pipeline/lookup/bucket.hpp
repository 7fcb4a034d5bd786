#pragma once

#include "kernels/model/problem.hpp"

namespace greta::runtime {

/// The problem that stands for all whose run-time dimensions are about as large. A look-up answers
/// them alike, so that no loop over lengths compiles anything anew.
///
/// Dimensions that vary from call to call become the next power of two: `rows`, `tokens`, `batch`
/// and `kv`; `m` beyond 8 and `q` beyond 16 likewise, up to which they stay, because kernels for
/// few rows are compiled for their number. The `rows` of argmax become the power of two before: no
/// more of them may share a workgroup than there are. The `m` of a GEMM whose A is stored
/// transposed stays: it decides how A may be read. So does what the model fixes, and what is beyond
/// 2^30. A problem that its operation would refuse when rounded stands for itself.
///
/// A configuration that is valid for the bucket is valid for every problem of it, with the same
/// compiled kernels: their extents are arguments.
Problem bucket(Problem problem);

}  // namespace greta::runtime
