#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/problem.hpp"
#include "kernels/model/space.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/dtype.hpp"

/// What bounds the spaces of every operation: the device's limits, and what its loads can do.
namespace greta::kernels {

/// A CPU that runs GLSL with its vector units (lavapipe). It keeps sums in its cache, compiles
/// slowly and limits loops. hip-host is none: it has the spaces of the GPUs that it imitates.
bool vectorising_cpu(const DeviceInfo& device);

/// Workgroups that keep the device busy; a guess where the API does not say.
std::int64_t busy_workgroups(const DeviceInfo& device);
/// 32-bit vector registers of a compute unit; a guess where the API does not say.
std::int64_t register_file(const DeviceInfo& device);
/// The most 32-bit vector registers that a thread can have, and that the threads of a workgroup can
/// have together: on RDNA, a workgroup may use those of two compute units.
std::int64_t thread_registers(const DeviceInfo& device);
std::int64_t workgroup_registers(const DeviceInfo& device);
/// The number of registers that compilers have for each thread of a workgroup of `threads`.
auto register_limit(const DeviceInfo& device, const auto& threads) {
  return min(thread_registers(device), workgroup_registers(device) / threads);
}
std::int64_t most_threads(const DeviceInfo& device);
/// Workgroups that fit into a grid folded into two dimensions, and into 32 bits.
std::int64_t most_workgroups(const DeviceInfo& device);

/// Elements of a load, up to 16 bytes.
std::vector<int> vector_widths(DType type);
/// The widest of them that divides both `stride` and `elements`.
int widest_vector(DType type, std::int64_t stride, std::int64_t elements);

void append(std::vector<Constraint>& constraints, std::vector<Constraint> more);

/// Refuses a problem whose rows (dimensions' product) can't be counted in 32 bits; the field is
/// `named`.
Result<void> check_count(const Problem& problem, std::string_view named,
                         const std::vector<std::string>& dimensions);

/// Rejects configurations that no compiler can keep in registers: each of `threads` threads uses
/// `least` registers at the same time, for `what`. A constraint must not reject more than that.
/// Estimates of what compilers need are for the order of defaults; what a compiler does need is
/// known when it has compiled a candidate.
Constraint register_constraint(const DeviceInfo& device, std::string_view what,
                               const Expression& least, const Expression& threads);

/// Elements of these types in the device's memory.
Constraint storage_constraint(DType in, DType out, const DeviceInfo& device);

}  // namespace greta::kernels
