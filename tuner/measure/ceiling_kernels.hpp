#pragma once

#include "runtime/device/device_info.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta::tuner {

// Kernels that reach a device's ceilings, in the language of its kernels. All have workgroups of
// ceiling_threads.
inline constexpr std::uint32_t ceiling_threads = 256;

/// So many of these that every part of the device has work.
std::uint32_t ceiling_groups(const DeviceInfo& device);

/// Independent FP32 FMAs in registers. Arguments: address of 4 KiB that are never written, u32
/// iterations, f32 1.5. A thread does fma_flops in each iteration.
KernelSource fma_kernel(const DeviceInfo& device);
inline constexpr double fma_flops = 8 * 32 * 2;

/// Copies copy_group_bytes per workgroup. Arguments: addresses of source and target.
KernelSource copy_kernel(const DeviceInfo& device);
inline constexpr std::uint64_t copy_group_bytes = 64 * ceiling_threads;

/// Reads pieces of copy_group_bytes. Arguments: address, u32 number of pieces, u32 of workgroups,
/// which may be fewer.
KernelSource read_kernel(const DeviceInfo& device);

/// Follows a chain of indices from element 0, one thread. Arguments: address of u32 elements, u32
/// steps.
KernelSource chase_kernel(const DeviceInfo& device);

/// Does nothing; no arguments.
KernelSource empty_kernel(const DeviceInfo& device);

/// Independent products of this kind in registers, matrix_chains of them in a subgroup; those of
/// warpgroups, which have one from shared memory, in a row. Arguments: address of 4 KiB that are
/// never written, u32 length of the dot products (a multiple of 128), u32 two inputs of equal
/// value.
KernelSource matrix_kernel(const DeviceInfo& device, const MatrixOperation& operation);
inline constexpr std::uint32_t matrix_chains = 8;
/// Its last argument: a small number of this type, in both halves of the word where it has 16 bits.
std::uint32_t matrix_input(DType type);
/// FLOPs of a subgroup for each unit of that length.
double matrix_flops(const DeviceInfo& device, const MatrixOperation& operation);

}  // namespace greta::tuner
