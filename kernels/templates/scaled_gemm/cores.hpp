#pragma once

#include "kernels/model/space.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

/// What the variants share whose waves use matrix cores.
namespace greta::kernels::scaled_gemm {

inline constexpr std::int64_t core_side = 16;  ///< rows and columns of a matrix product

/// Rows up to which waves that share k (matrix_rows) are the default: larger tiles of few rows
/// leave one wave with all of k. On an H200, 16 x 4096 x 4096 took 26.5 us with such tiles.
inline constexpr std::int64_t most_few_rows = 32;

/// Returns whether variants for few rows are the default.
inline bool for_few_rows(const Shape& shape) {
  return !shape.grouped() && shape.m <= most_few_rows;
}

/// How waves multiply numbers of microscaling formats, in the order of CORES in mx_matrix.hip.
enum class MxCores : std::uint8_t {
  scaled,  ///< as they are, with scales: gfx950
  bytes,   ///< as fp8; threads scale the sums of 32 k
  halves,  ///< the same as 16-bit numbers, which represent them exactly
  none
};
MxCores mx_cores(const Shape& shape, const DeviceInfo& device);

/// Returns whether the matrix cores of the device's waves multiply numbers of the format.
bool has_cores(const Shape& shape, const DeviceInfo& device);
/// Returns the constraint that they do.
Constraint cores_constraint(const Shape& shape, const DeviceInfo& device);
/// Returns whether waves that share k (matrix_rows) have the problem's scales: those of
/// microscaling formats on NVIDIA GPUs.
bool rows_have_scales(const Shape& shape, const DeviceInfo& device);
/// Returns whether the device has instructions of warpgroups on the format.
bool has_warpgroup_bytes(const Shape& shape, const DeviceInfo& device);
/// Returns whether threads add the sums of every 128 k to sums of their own.
bool adds_steps(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::scaled_gemm
