#pragma once

#include <string>
#include <string_view>

#include "runtime/device/device_info.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta::tuner {

// Kernels that reach a device's ceilings, in the device's kernel language. All have workgroups of
// ceiling_threads threads.
inline constexpr std::uint32_t ceiling_threads = 256;

/// Returns a kernel "greta_NAME" without matrix operations, of one of these sources, with 16 bytes
/// of arguments. Sources in HIP may use common/types.hip.
KernelSource plain_kernel(const DeviceInfo& device, const std::string& name, std::string_view glsl,
                          std::string_view hip);

/// Returns the number of workgroups that occupies the whole device.
std::uint32_t ceiling_groups(const DeviceInfo& device);

/// Independent FP32 FMAs in registers. Arguments: address of 4 KiB that are never written, u32
/// iterations, f32 1.5. Each thread performs fma_flops per iteration.
KernelSource fma_kernel(const DeviceInfo& device);
inline constexpr double fma_flops = 8 * 32 * 2;

/// Copies copy_group_bytes per workgroup. Arguments: source and destination address.
KernelSource copy_kernel(const DeviceInfo& device);
inline constexpr std::uint64_t copy_group_bytes = 64 * ceiling_threads;

/// Reads chunks of copy_group_bytes. Arguments: address, u32 number of chunks, u32 number of
/// workgroups, which may be smaller.
KernelSource read_kernel(const DeviceInfo& device);

/// Follows a chain of indices from element 0 with one thread. Arguments: address of u32 elements,
/// u32 steps.
KernelSource chase_kernel(const DeviceInfo& device);

/// Does nothing and has no arguments.
KernelSource empty_kernel(const DeviceInfo& device);

/// Independent matrix operations of this kind on registers, in matrix_chains chains per subgroup.
/// Warpgroup operations, which read their operands from shared memory, form one chain. Arguments:
/// address of 4 KiB that are never written, u32 length of the dot products (a multiple of 128), u32
/// two inputs of equal value.
KernelSource matrix_kernel(const DeviceInfo& device, const MatrixOperation& operation);
inline constexpr std::uint32_t matrix_chains = 8;
/// Returns the kernel's last argument: a small number of this type, in both halves of the word for
/// a 16-bit type.
std::uint32_t matrix_input(DType type);
/// Returns the FLOPs of one subgroup per unit of dot-product length.
double matrix_flops(const DeviceInfo& device, const MatrixOperation& operation);

/// A kernel of such operations on MatrixNumbers, with the same arguments; lengths are multiples of
/// 256.
struct RateKernel {
  KernelSource source;
  double flops = 0;  ///< of one subgroup per unit of dot-product length
};
/// Returns whether the device has them.
bool has_matrix_kernel(const DeviceInfo& device, MatrixNumbers numbers);
/// Returns the kernel of the device's fastest such operations, without those that scale blocks of
/// 32 (gfx950). Requires has_matrix_kernel().
RateKernel matrix_kernel(const DeviceInfo& device, MatrixNumbers numbers);
/// Returns the last argument of that kernel.
std::uint32_t matrix_input(MatrixNumbers numbers);

}  // namespace greta::tuner
