#pragma once

#include <cstdint>
#include <vector>

#include "kernels/templates/attention/shape.hpp"

/// Shared parts of kernels whose workgroups divide the keys into SPLIT slices (slices.hip). Readers
/// are workgroups that share no rows of queries.
namespace greta::kernels::attention {

/// Returns the capacity that constraints of SPLIT assume: the next power of two, so that they
/// decide alike for all lengths that are looked up together.
std::int64_t rounded_capacity(const Shape& shape);

/// Returns the values of SPLIT, the number of slices.
std::vector<int> key_slices();

/// Returns the number of floats of shared memory with which the last workgroup joins `split` slices
/// of `rows` rows.
auto slices_floats(std::int64_t rows, const auto& split) {
  return rows * (2 * split + 2);
}

/// Returns the size of what `split` slices of all readers' rows leave in the workspace, after a
/// counter for each reader.
auto slices_bytes(const Shape& shape, const auto& rows, const auto& split) {
  return split * rows * (shape.v_dim + 2) * 4;
}

/// Returns the constraint that the device can hold `bytes`, unless `unsplit`.
Constraint workspace_constraint(const DeviceInfo& device, const Expression& unsplit,
                                const Expression& bytes);

}  // namespace greta::kernels::attention
