#pragma once

#include <cstdint>

#include "kernels/model/space.hpp"
#include "kernels/templates/attention/shape.hpp"

/// What a workgroup of warpgroups.hip needs.
namespace greta::kernels::attention {

constexpr std::int64_t warpgroup_size = 128;  ///< threads
constexpr std::int64_t rows_of_warpgroup = 64;

/// The values of a configuration's parameters (warpgroups.cpp).
struct WarpgroupTile {
  int bk, groups, stages, producer = 0, turns = 0;
  int pack = 0, split = 1, fold = 1, together = 1;

  /// Returns the number of rows: queries, or with PACK queries times heads.
  std::int64_t rows() const { return groups * rows_of_warpgroup; }
  std::int64_t threads() const { return (groups + producer) * warpgroup_size; }
};

WarpgroupTile warpgroup_tile(const Config& config);
Config warpgroup_config(const WarpgroupTile& tile);

/// Returns the elements of a head in shared memory: those of whole matrix instructions.
std::int64_t warpgroup_padded(std::int64_t dim);

/// Returns the size of shared memory: the workgroup's queries, STAGES tiles of keys, and of values
/// from a multiple of 1024 bytes on; joins of slices take their place.
std::int64_t warpgroup_shared_bytes(const Shape& shape, const WarpgroupTile& tile);

/// Returns the number of 32-bit registers of a thread for outputs, scores and weights.
auto warpgroup_sums(const Shape& shape, const auto& bk) {
  return warpgroup_padded(shape.v_dim) / 2 + bk / 2 + bk / 4;
}

/// Returns the number of registers that a thread has or, without a PRODUCER, is estimated to need.
std::int64_t warpgroup_registers(const Shape& shape, const DeviceInfo& device,
                                 const WarpgroupTile& tile);

/// Returns the predicted time of a tile in cycles of a compute unit: of the longest
/// workgroup, or of all that a unit runs, one set of resident ones after the other. A step's time
/// is linear in its matrix instructions and its exponential functions. The coefficients are fitted
/// to configurations of 93 problems on an NVIDIA H200:
/// results/2026-11-29-nvidia-h200-attention-slices.
double warpgroup_cycles(const Shape& shape, const DeviceInfo& device, const WarpgroupTile& tile);

}  // namespace greta::kernels::attention
