#pragma once

#include <cstdint>
#include <vector>

#include "kernels/skeletons/rows.hpp"

/// Search spaces and default configurations of the kernels in common/rows.{hip,glsl}.
namespace greta::kernels::rows {

/// Returns the number of operands that have a row for each row of the problem and are read.
std::int64_t inputs_of(const Shape&);
/// Returns the number of operands that all rows have in common.
std::int64_t weights_of(const Shape&);

/// Returns the number of vectors of a row that each of its THREADS / ROWS threads processes.
std::int64_t vectors_of_thread(std::int64_t cols, const Config& config);

/// Values of the staged variant's KEEP, as in common/rows.hip: where the weights of columns stay.
constexpr int in_registers = 1, in_shared_memory = 2;

/// Returns the bytes of shared memory of a workgroup of the staged variant: its next rows, and with
/// KEEP=2 the weights of its columns.
std::int64_t staged_bytes(const Shape&, const Config&);
/// Returns the number of workgroups, or of clusters, that stay in the staged variant.
std::int64_t staged_groups(const Shape&, const DeviceInfo&, const Config&);

Alternative held_space(const Shape&, const DeviceInfo&);
Alternative staged_space(const Shape&, const DeviceInfo&);
Alternative streamed_space(const Shape&, const DeviceInfo&);
Alternative split_space(const Shape&, const DeviceInfo&);
Alternative naive_space(const Shape&, const DeviceInfo&);

/// Return default configurations, best first. Empty if another variant is the better default.
std::vector<Config> held_defaults(const Shape&, const DeviceInfo&);
std::vector<Config> staged_defaults(const Shape&, const DeviceInfo&);
std::vector<Config> streamed_defaults(const Shape&, const DeviceInfo&);
std::vector<Config> split_defaults(const Shape&, const DeviceInfo&);
std::vector<Config> naive_defaults(const Shape&, const DeviceInfo&);

}  // namespace greta::kernels::rows
