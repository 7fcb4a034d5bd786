#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/space.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/architectures.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::kernels::gemm {

constexpr int most_in_cluster = 8;  ///< workgroups, on every device that has clusters
constexpr int warpgroup_rows = 64;  ///< INSTR of products of warpgroups

/// What matrix.hip makes of a configuration: which of its branches a device and a problem take, and
/// what a workgroup needs. The comments there say why.
class MatrixKernel {
 public:
  MatrixKernel(const Shape& shape, const DeviceInfo& device);

  /// INSTR: extents of a product on the device's matrix cores; none without such for these inputs.
  /// The largest is that of warpgroups, where the device has such products.
  const std::vector<int>& products() const { return products_; }
  /// Whether warpgroups multiply straight from shared memory in this configuration, or could; and
  /// whether their products have 64 columns instead of rows.
  bool by_warpgroups(const Config& config) const { return config["INSTR"] == warpgroup_rows; }
  bool offers_warpgroups() const;
  bool swapped(const Config& config) const {
    return by_warpgroups(config) && config["WM"] < warpgroup_rows;
  }
  /// Whether an operand's tile is turned on its way, to lie along k in shared memory.
  bool turned(bool along_k) const { return !along_k && cores_ != MatrixCores::mma; }
  /// Elements of the loads that can go to shared memory past the registers; none where the device
  /// can't do that, or where a tile must be turned on its way.
  const std::vector<int>& copies() const { return copies_; }
  /// Whether every wave must have the same number of copies: they are told apart by counting.
  bool counts_copies() const { return cores_ == MatrixCores::mfma; }

  int wave() const { return wave_; }
  /// Threads that have a WM x WN part of the tile together.
  std::int64_t part_threads(const Config& config) const;
  std::int64_t threads(const Config& config) const;
  /// Elements along k of a product.
  int depth(int product) const;
  /// Matrix instructions of a wave in a K step.
  std::int64_t instructions(const Config& config) const;
  /// Units that a thread moves in a K step, as matrix_loader.hip counts them; a fraction where only
  /// some threads have one. And the loads that they take.
  double units_a(const Config& config) const;
  double units_b(const Config& config) const;
  std::int64_t loads_a(const Config& config) const;
  std::int64_t loads_b(const Config& config) const;
  /// Dynamic shared memory.
  std::int64_t shared_bytes(const Config& config) const;
  /// 32-bit registers that a thread uses at once, whatever the compiler does: sums, loads in flight
  /// and the operands of one product.
  std::int64_t least_registers(const Config& config) const;
  /// An estimate of those that a compiler needs, which orders defaults.
  std::int64_t registers(const Config& config) const;
  /// Those that it has.
  std::int64_t register_limit(const Config& config) const;

 private:
  double units(const Config& config, bool along_k, const char* span, const char* vec) const;
  std::int64_t tile_bytes(const Config& config, bool along_k, const char* span) const;
  std::int64_t fragment_registers() const;  ///< of an operand of a product
  std::int64_t sum_registers(const Config& config) const;
  std::int64_t loaded_registers(const Config& config) const;

  Shape shape_;
  MatrixCores cores_;
  std::int64_t thread_registers_, workgroup_registers_;
  int wave_, element_bytes_;
  int chunk_;  ///< elements of 16 bytes
  std::vector<int> products_, copies_;
};

/// Parameters and constraints of `matrix` where kernels are HIP.
Alternative matrix_space(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::gemm
