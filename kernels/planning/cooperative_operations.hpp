#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/space.hpp"
#include "kernels/planning/render.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/device/kernel_source.hpp"

/// Cooperative-matrix operations available to GLSL kernels.
namespace greta::kernels {

/// Returns the device's operations for 16-bit inputs: the largest one for each n.
std::vector<MatrixOperation> cooperative_products(DType in, const DeviceInfo& device);
/// Returns the operation with this n, or an operation that fits no tile if there is none.
MatrixOperation product_of(const std::vector<MatrixOperation>& products, int n);
/// Returns the values of a parameter that selects an operation by its n; never empty.
std::vector<int> product_names(const std::vector<MatrixOperation>& products);
/// Returns the values of a parameter SUBGROUP in ascending order; never empty.
std::vector<int> subgroup_sizes(const DeviceInfo& device);

/// Adds INSTR_M, INSTR_N and INSTR_K: the operation of a kernel.
void add_operation(Defines& defines, const MatrixOperation& operation);
/// Makes a kernel require subgroups of SUBGROUP, where the device can choose their size.
void require_subgroups(KernelSource& kernel, const DeviceInfo& device, const Config& config);

/// What a subgroup does in a kernel's longest loop.
struct CooperativeLoop {
  std::int64_t steps;
  std::int64_t products;  ///< of a step
  std::int64_t others;    ///< other operations of a step on matrices of sums
};

/// Returns constraints for kernels with cooperative matrices on a CPU through Vulkan. Where GRETA
/// emulates matrices, products are code of their own, and operations loops over a thread's sums,
/// whose iterations are limited (loop_limit). A CPU driver that has matrices itself gets the same
/// constraints, since DeviceInfo does not tell the two apart: Mesa's writes operations out without
/// loops, so that the code is at least as large, and the iterations are an upper bound, which costs
/// only some tiles with long loops. `read` names the parameters that `loop_of` reads besides INSTR,
/// `length` is what its steps divide. On other devices there are none.
std::vector<Constraint> cooperative_cpu_constraints(
    const DeviceInfo& device, const std::vector<MatrixOperation>& products,
    std::vector<std::string> read,
    const std::function<CooperativeLoop(const Config&, const MatrixOperation&)>& loop_of,
    std::int64_t length);

/// The registers that kernels with cooperative matrices need, over their estimates, which the
/// spaces use as limits.
constexpr double beside_matrices = 1.15;

}  // namespace greta::kernels
