#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// FP64 reference of a GEMM problem. `inputs` are A, B, then bias, residual and C where the problem
/// reads them; they are found by name.
///
/// Up to 2^31 multiplications every element is checked. Beyond, 16 and more rows are (first, last,
/// the first rows of edge tiles, and random ones), and the rest as follows: Freivalds' method
/// multiplies every block of 256 columns by random signs, and so sees each element; where an
/// activation hides the product from it, one random element of each 16 x 16 block is checked
/// instead. The bounds are those of GemmErrorModel.
std::unique_ptr<Reference> gemm_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

/// Whether time and memory allow a check of every element.
bool gemm_fully_checked(const Problem& problem);

}  // namespace greta::kernels
