#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

/// Tiles of the variant `tma`: what they take of a device, and those that defaults have.
namespace greta::kernels::scaled_gemm::tma_tiles {

constexpr std::int64_t step = 128;  ///< k of a stage
constexpr int warpgroup_rows = 64;

/// Returns whether threads add the sums of each step.
bool promoted(const Shape& shape);
std::int64_t threads_of(const Config& config, std::int64_t wave);
int cluster_of(const Config& config);
/// Returns the columns of C of a tile.
std::int64_t tile_columns(const Shape& shape, const Config& config);
/// Returns whether threads, with STORE=0, store 32 of a tile's many columns at a time, not 64.
bool stores_narrow(const Shape& shape, const Config& config);
/// Returns whether all rows of C begin at multiples of 16 bytes.
bool has_whole_rows(const Shape& shape);
/// Returns whether the workgroups that share k are a cluster.
bool folds_in_cluster(const Config& config);
/// Returns the bytes of dynamic shared memory, as tma.hip has them.
std::int64_t shared_bytes(const Shape& shape, const Config& config);
/// Returns the number of 32-bit registers that a thread of a warpgroup needs at least.
std::int64_t least_registers(const Shape& shape, const Config& config);
/// Returns whether a thread has these registers: some of those of the warpgroup that copies.
bool has_registers(const Shape& shape, const Config& config);
std::int64_t clusters_along_m(const Shape& shape, const Config& c);
std::int64_t clusters_along_n(const Shape& shape, const Config& c);
/// Returns whether a tile's columns have two blocks of scales at most: with gates, one of these and
/// one of ups.
bool has_blocks(const Shape& shape, const Config& c);

/// Returns tiles that keep the device busy, those that share most first, with as many stages as
/// shared memory has room for; of groups of rows, those first that compute the fewest elements.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::scaled_gemm::tma_tiles
