#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/gemm/shape.hpp"

namespace greta::kernels::gemm {

/// Implements Operation::harden. Makes rows of A, columns of B and the epilogue's operands extreme,
/// independently of each other, and elements or lines of A and B NaN, unless alpha is 0. Products
/// without an activation or a norm have moderate elements and infinities instead in one case of
/// four, or of f32 in half of them. Every other element of C stays below an eighth of its type's
/// range, and its sums below that of f32. Columns of B keep a mean of zero, as GemmErrorModel
/// requires. Elements of A and B are no subnormal numbers, because some matrix instructions
/// (gfx90a) flush those of 16 bits to zero.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

/// Makes rows of A and columns of B of a plain product extreme in the same way.
void harden_product(const Shape& shape, HostTensor& a, HostTensor& b, std::uint64_t seed);

}  // namespace greta::kernels::gemm
