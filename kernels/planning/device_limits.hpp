#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/problem.hpp"
#include "kernels/model/space.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/dtype.hpp"

/// Limits of the spaces of every operation, derived from the device's limits and its loads.
namespace greta::kernels {

/// Returns whether the device is a CPU that runs GLSL with vector instructions (lavapipe). It keeps
/// accumulators in its cache, compiles slowly and limits loops. Not hip-host, which has the spaces
/// of the GPUs that it emulates.
bool vectorising_cpu(const DeviceInfo& device);

/// Returns whether NVRTC compiles kernels for the device, or for the GPU that hip-host emulates.
bool compiled_by_nvrtc(const DeviceInfo& device);

/// Returns the number of workgroups that occupy the device; an estimate if the API does not report
/// it.
std::int64_t busy_workgroups(const DeviceInfo& device);
/// Returns the number of 32-bit vector registers of a compute unit; an estimate if the API does not
/// report it.
std::int64_t register_file(const DeviceInfo& device);
/// Return the largest number of 32-bit vector registers of a thread, and of all threads of a
/// workgroup. On RDNA, a workgroup may use the registers of two compute units.
std::int64_t thread_registers(const DeviceInfo& device);
std::int64_t workgroup_registers(const DeviceInfo& device);
/// Returns the number of registers that compilers have for each thread of a workgroup of `threads`.
auto register_limit(const DeviceInfo& device, const auto& threads) {
  return min(thread_registers(device), workgroup_registers(device) / threads);
}
/// Returns the threads of a compute unit if each of its schedulers has one subgroup. NVIDIA's and
/// CDNA's units have four, RDNA's two; an estimate for other GPUs.
std::int64_t scheduled_threads(const DeviceInfo& device);
std::int64_t most_threads(const DeviceInfo& device);
/// Returns the values of XCDS, the number of dies whose workgroups get neighbouring tiles: 1 and
/// accelerator_dies().
std::vector<int> die_counts(const DeviceInfo& device);
/// Returns the number of workgroups that fit into 32 bits and into a grid folded into two
/// dimensions.
std::int64_t most_workgroups(const DeviceInfo& device);
/// Returns the bytes of workspace that a product may have for partial sums and copies of operands.
std::int64_t most_workspace(const DeviceInfo& device);

/// Returns the numbers of elements in a load of up to 16 bytes.
std::vector<int> vector_widths(DType type);
/// Returns the widest of vector_widths() that divides both `stride` and `elements`.
int widest_vector(DType type, std::int64_t stride, std::int64_t elements);

void append(std::vector<Constraint>& constraints, std::vector<Constraint> more);

/// Rejects problems whose number of rows (the dimensions' product) exceeds 32 bits. The failure
/// names the field `named`.
Result<void> check_count(const Problem& problem, std::string_view named,
                         const std::vector<std::string>& dimensions);

/// Rejects configurations in which each of `threads` threads uses more registers at the same time
/// than it can have: `least` of them, for `what`. Estimates of what compilers need only order
/// defaults, because the exact number is known when a compiler has compiled the candidate.
Constraint register_constraint(const DeviceInfo& device, std::string_view what,
                               const Expression& least, const Expression& threads);

/// Iterations of a thread's loops, below which Mesa's CPU driver does not end them: it does so
/// silently after 65535 iterations of all loops together, for which the end of a loop counts as
/// another one.
constexpr std::int64_t most_iterations = 60000;

/// Rejects configurations with most_iterations or more for `length` elements.
Constraint loop_limit(const Expression& iterations, std::int64_t length);

/// Returns the constraint that the device can load and store these types.
Constraint storage_constraint(DType in, DType out, const DeviceInfo& device);

}  // namespace greta::kernels
