#pragma once

#include <random>
#include <vector>

#include "kernels/model/problem.hpp"
#include "kernels/model/tensor.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

namespace greta::kernels::scaled_gemm {

/// Implements Operation::input: numbers across each format's range, with scales that make them
/// smaller than 0.5.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);

/// Implements Operation::harden: rows of special numbers; scales that are zero, negative, subnormal
/// or of any size. NaN and infinities occur in small problems, whose results are all checked, and
/// not together with scales that devices may flush to zero.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

/// The same of a problem with groups or without. `fully_checked`: by the reference.
void harden_operands(const Shape& shape, bool fully_checked, std::vector<HostTensor>& inputs,
                     std::uint64_t seed);

/// Implements input() for numbers of a format and for their scales.
HostTensor random_operand(ByteFormat format, const TensorSpec& spec, std::uint64_t seed);

/// Replaces lines of B by special ones, without infinities, and scales by zero, negative and small
/// ones of at most `most`. `finite`: without NaN.
void harden_lines(Shape lines, double most, bool finite, HostTensor& numbers, HostTensor& scales,
                  std::mt19937_64& random);

}  // namespace greta::kernels::scaled_gemm
