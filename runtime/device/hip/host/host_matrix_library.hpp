#pragma once

#include "runtime/device/hip/matrix_library.hpp"

namespace greta::device::hip::host {

/// Returns hip-host's own library of matrix products, with hipBLASLt's interface. It takes the
/// place of a vendor's library where kernels run on the CPU, so that everything that uses one can
/// be tested there. It ranks sixteen algorithms, which are two orders of summation in turn, and
/// with a workspace of m x n x 4 bytes also one that adds two slices of K there. Like cuBLASLt's,
/// its algorithms have settings: the forward order takes any number of slices.
Result<std::shared_ptr<const MatrixLibrary>> open_matrix_library();

}  // namespace greta::device::hip::host
