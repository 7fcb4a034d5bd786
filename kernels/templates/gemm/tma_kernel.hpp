#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/templates/gemm/matrix_kernel.hpp"

namespace greta::kernels::gemm {

/// Predicts how tma.hip treats a configuration, as MatrixKernel does for matrix.hip.
class TmaKernel {
 public:
  TmaKernel(const Shape& shape, const DeviceInfo& device);

  /// Returns whether the device has warpgroup instructions for these inputs.
  bool offered() const { return offered_; }
  int wave() const { return matrix_.wave(); }
  const std::vector<int>& slice_counts() const { return matrix_.slice_counts(); }
  /// Returns whether instructions have 64 columns instead of 64 rows.
  static bool swapped(const Config& config) { return config["BM"] % warpgroup_rows != 0; }
  /// Returns the number of warpgroups that compute a tile together.
  static int groups_of_tile(const Config& config);
  /// Return the extents of a warpgroup's part of the tile: they share its rows, or swapped its
  /// columns.
  static int wm(const Config& config);
  static int wn(const Config& config);
  /// Returns the number of swapped rows that a wave hands out at a time.
  static int piece_rows(const Config& config);
  /// Returns whether parts are whole instructions.
  static bool has_parts(const Config& config);
  /// Returns the number of workgroups of a cluster that share operands.
  static int cluster(const Config& config) { return config["CLUSTER_M"] * config["CLUSTER_N"]; }
  /// Return the numbers of clusters, of one workgroup or several, along m, along n, and of all.
  static std::int64_t clusters_along_m(const Shape& shape, const Config& config);
  static std::int64_t clusters_along_n(const Shape& shape, const Config& config);
  static std::int64_t clusters(const Shape& shape, const Config& config);

  /// Returns the number of threads: those of the warpgroups, and of the wave that copies, or where
  /// registers are handed over the whole warpgroup of it.
  std::int64_t threads(const Config& config) const;
  /// Return the numbers of lines of an operand's part of a K step that a workgroup copies at once.
  std::int64_t lines_a(const Config& config) const;
  std::int64_t lines_b(const Config& config) const;
  /// Return those that all workgroups of a cluster copy.
  std::int64_t all_lines_a(const Config& config) const;
  std::int64_t all_lines_b(const Config& config) const;
  /// Returns whether elements of C are put together before they are stored (packed_sums.hip);
  /// packs() for a product without slices.
  bool packed(const Config& config) const;
  static bool packs(const Shape& shape, const Config& config);
  /// Returns the bytes of dynamic shared memory.
  std::int64_t shared_bytes(const Config& config) const;
  /// Returns the constraints by which these are at most `limit`.
  std::vector<Constraint> shared_constraints(std::int64_t limit) const;
  /// Return the number of 32-bit registers that a thread of a warpgroup needs at least, and has:
  /// those of the wave or warpgroup that copies hand over what they don't need.
  std::int64_t least_registers(const Config& config) const;
  std::int64_t register_limit(const Config& config) const;
  /// Returns the number of registers of each thread when the workgroup starts.
  std::int64_t launch_registers(const Config& config) const;
  /// Returns the number of parts in which a warpgroup stores packed elements, and of how many the
  /// residual is loaded before the products: those that registers have room for.
  static int parts(const Config& config);
  int early_parts(const Config& config) const;
  /// Returns whether these registers suffice.
  bool has_registers(const Config& config) const;

 private:
  std::int64_t tile_bytes(bool along_k, std::int64_t span, std::int64_t bk) const;
  std::int64_t stages_bytes(const Config& config) const;
  /// Return shared_bytes() where FOLD is 2, and where it isn't.
  std::int64_t exchange_bytes(const Config& config) const;
  std::int64_t own_bytes(const Config& config, bool packed) const;
  bool packs(const Config& config) const { return packs(shape_, config); }

  Shape shape_;
  MatrixKernel matrix_;
  bool offered_;
};

}  // namespace greta::kernels::gemm
