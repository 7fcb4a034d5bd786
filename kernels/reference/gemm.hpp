#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/reference/product_operands.hpp"

namespace greta::kernels {

/// Returns the FP64 reference of a GEMM problem. `inputs` contain A, B and, if the problem reads
/// them, bias, residual and C, by name.
///
/// Checks every element of problems of up to 2^31 multiplications. For larger problems, checks at
/// least 16 rows in full (first, last, the first rows of edge tiles, and random ones) and the
/// remaining rows with Freivalds' method, which multiplies every block of 256 columns by random
/// signs and so covers each element. If an activation prevents this, checks one random element of
/// each 16 x 16 block instead. Error bounds: GemmErrorModel.
std::unique_ptr<Reference> gemm_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

/// Returns the same of other operands, which take the place of A and B. `inputs`: the others.
/// Elements that are not finite give what FP64 does, if every element is checked.
std::unique_ptr<Reference> product_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             ProductOperands operands, std::uint64_t seed);

/// Returns the same of a batch, each of whose products is checked as one of its own.
std::unique_ptr<Reference> gemm_batch_reference(const Problem& problem,
                                                const std::vector<HostTensor>& inputs,
                                                std::uint64_t seed);

/// Returns whether the problem is small enough to check every element.
bool gemm_fully_checked(const Problem& problem);

/// Returns the product A B^T of another operation's m, n and k, with inputs of this type and the
/// operation's outputs.
Problem plain_product(const Problem& problem, DType in);

}  // namespace greta::kernels
