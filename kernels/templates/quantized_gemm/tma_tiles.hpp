#pragma once

#include <cstdint>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"

/// What a configuration of `tma` takes of a device, and its parts: tma.cpp, its defaults and its
/// costs ask for it.
namespace greta::kernels::quantized_gemm::tma_tiles {

inline constexpr std::int64_t step = 128;         ///< k of a stage
inline constexpr std::int64_t product_cols = 64;  ///< columns of C, which are rows of a product

/// Returns whether the device has the instructions, for A of this type.
bool offered(const Shape& shape, const DeviceInfo& device);

/// Returns whether weights may be rounded to A's type, or are exact in it: all of mxfp4 below 2^128
/// are in bf16.
bool may_round(const Shape& shape);

/// Returns the warpgroups that multiply.
std::int64_t warpgroups_of(const Config& config);
/// Returns the threads of a workgroup, with those that copy.
std::int64_t threads_of(const Config& config, std::int64_t wave);
/// Returns the number of sums of a tile that a launch adds up.
std::int64_t slices_of(const Config& config);
/// Returns the steps of a tile that the busiest warpgroup multiplies: shares have whole boxes of
/// weights.
std::int64_t steps_of_warpgroup(const Shape& shape, const Config& config);
/// Returns the products of a warpgroup, each of which has product_cols.
std::int64_t products_of(const Config& config);

/// Returns the bytes of a line of weights that a box has, or 0 if there are no boxes: rows of
/// blocks must be multiples of 16 bytes for them. Boxes of blocks have 256 weights of a line, and
/// are as long as lines that begin in different banks of shared memory.
std::int64_t box_bytes(const Shape& shape);
/// Returns the number of boxes of weights in shared memory: those of the stages of A, and one more
/// where a box has the weights of several.
std::int64_t line_stages(const Shape& shape, const Config& config);
/// Returns the bytes of dynamic shared memory, as tma.hip has them.
std::int64_t shared_bytes(const Shape& shape, const Config& config);

/// Returns the number of 32-bit registers that a thread of a warpgroup needs at least: sums, those
/// of a group unless weights are rounded, operands, and scales and zero points, or parts of blocks.
std::int64_t least_registers(const Shape& shape, const Config& config);
/// Returns whether a thread has these registers: some of those of the warpgroup that copies.
bool has_registers(const Shape& shape, const Config& config);

/// Returns the lines of tiles that a launch has.
std::int64_t tiles_along_m(const Shape& shape, const Config& config);
/// Returns the columns of tiles.
std::int64_t tiles_along_n(const Shape& shape, const Config& config);
/// Returns the tiles that have rows.
std::int64_t filled_tiles(const Shape& shape, const Config& config);

/// Returns configurations for a shape, the one that should be fastest first.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device);
/// Returns others that are worth a prediction, for few rows.
std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device);

/// Returns the work of a launch, for predictions.
KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config);

}  // namespace greta::kernels::quantized_gemm::tma_tiles
