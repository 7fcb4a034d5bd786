#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/space.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::gemm {

constexpr int warpgroup_rows = 64;  ///< INSTR of warpgroup instructions
/// Returns the WM or WN with which a warpgroup has all of the tile's rows or columns: the least
/// value that is not less.
constexpr int whole_part(int extent) {
  if (extent > 64) return (extent + 63) / 64 * 64;
  return extent > 32 ? 64 : extent > 16 ? 32 : 16;
}

/// Returns the bytes of shared memory with FOLD=2: of tiles, whose place sums take, and of what a
/// workgroup receives, which has a place of its own if it is small, and is after the sums if not.
std::int64_t exchanged_bytes(std::int64_t tiles, std::int64_t sums, std::int64_t received);

/// Predicts how matrix.hip treats a configuration: the branches that a device and a problem take,
/// and the resources of a workgroup. The comments there give the reasons. If the shape allows
/// tf32x3, NVIDIA's matrix instructions have products of f32, too.
class MatrixKernel {
 public:
  MatrixKernel(const Shape& shape, const DeviceInfo& device);

  /// Returns the values of INSTR: extents of the device's matrix instructions, empty if there are
  /// none for these inputs. The largest is that of warpgroup instructions, if supported.
  const std::vector<int>& products() const { return products_; }
  /// Return whether this configuration uses warpgroup instructions, which read shared memory
  /// directly, whether the device supports them, and whether the operands are swapped, so that
  /// instructions have 64 columns instead of 64 rows.
  bool by_warpgroups(const Config& config) const { return config["INSTR"] == warpgroup_rows; }
  bool offers_warpgroups() const;
  bool swapped(const Config& config) const {
    return by_warpgroups(config) && config["BM"] < warpgroup_rows;
  }
  /// Return the extents of a part of the tile: WM and WN, or with warpgroup instructions the whole
  /// tile's if that is less. So a search can change BN alone.
  int wm(const Config& config) const { return part(config, "BM", "WM"); }
  int wn(const Config& config) const { return part(config, "BN", "WN"); }
  /// Returns the configuration with these extents, as the kernel source has them.
  Config with_parts(Config config) const;
  /// Returns the value of TURN with which instructions transpose tiles: 1 if reads of shared memory
  /// do, 2 if loads from global memory do, 0 if there are none or nothing is to be transposed. TURN
  /// is a parameter where it is not 0.
  int turning() const { return turning_; }
  /// Return whether instructions transpose tiles: any, reads, or loads.
  bool turns(const Config& config) const { return turning_ != 0 && config["TURN"] != 0; }
  bool turns_by_reads(const Config& config) const { return turning_ == 1 && turns(config); }
  bool turns_by_loads(const Config& config) const { return turning_ == 2 && turns(config); }
  /// Returns whether an operand's tile is transposed in registers, before it is written to shared
  /// memory, so that k is contiguous.
  bool turned(const Config& config, bool along_k) const {
    return !along_k && !reads_transpose() && !turns(config);
  }
  /// Returns whether all reads of shared memory can transpose.
  bool reads_transpose() const { return cores_ == MatrixCores::mma && element_bytes_ == 2; }
  /// Returns whether products of f32 are three of TF32.
  bool splits() const { return splits_; }
  /// Returns whether PRIORITY and PINGPONG are parameters.
  bool offers_pingpong() const { return cores_ == MatrixCores::mfma; }
  /// Returns whether INTERLEAVE is a parameter.
  bool offers_interleaving() const {
    return cores_ != MatrixCores::mma && cores_ != MatrixCores::none;
  }
  /// Return whether B lies in panels, whether DIRECT is a parameter then, and whether a
  /// configuration loads B's fragments to registers directly, so that B has no tile in shared
  /// memory.
  bool has_panels() const { return shape_.panels; }
  bool offers_direct() const { return shape_.panels && offers_interleaving(); }
  bool direct(const Config& config) const { return offers_direct() && config["DIRECT"] != 0; }
  /// Returns the numbers of elements of asynchronous loads to shared memory. Empty if the device
  /// has none or a tile must be transposed when it is written.
  const std::vector<int>& copies() const { return copies_; }
  /// Returns whether every wave must issue the same number of copies, because they are awaited by
  /// counting.
  bool counts_copies() const { return cores_ == MatrixCores::mfma; }

  /// Returns whether a wave has registers for parts of 96 x 96: up to 512 for a thread of 64.
  bool has_large_parts() const { return cores_ == MatrixCores::mfma; }
  /// Returns the values of SPLIT: more where tiles are large or many workgroups run at once.
  const std::vector<int>& slice_counts() const;

  int wave() const { return wave_; }
  /// Returns the number of threads that share a WM x WN part of the tile.
  std::int64_t part_threads(const Config& config) const;
  std::int64_t threads(const Config& config) const;
  /// Returns k of a matrix instruction.
  int depth(int product) const;
  /// Returns the number of matrix instructions of a wave per stage of BK, and of those that a turn
  /// of the loop over K has.
  std::int64_t instructions(const Config& config) const;
  std::int64_t turn_instructions(const Config& config) const;
  /// Return the number of units that a thread moves per stage, as matrix_loader.hip counts them
  /// (fractional if only some threads move one), and the number of loads for them.
  double units_a(const Config& config) const;
  double units_b(const Config& config) const;
  std::int64_t loads_a(const Config& config) const;
  std::int64_t loads_b(const Config& config) const;
  /// Return the bytes of shared memory that the stages take, that sums take when waves store them,
  /// and with FOLD=2, where all sums of a tile are stored at once, those of both and the inbox.
  std::int64_t tiles_bytes(const Config& config) const;
  std::int64_t sums_bytes(const Config& config) const;
  /// Returns the columns of sums that a wave stores at a time: few where the residual is loaded
  /// element by element, since each takes a register.
  int sum_columns() const;
  std::int64_t cluster_bytes(const Config& config) const;
  /// Returns the bytes of dynamic shared memory.
  std::int64_t shared_bytes(const Config& config) const;
  /// Returns the number of 32-bit registers that a thread uses at once: accumulators, loads in
  /// flight, and the operands of one matrix instruction.
  std::int64_t least_registers(const Config& config) const;
  /// Returns an estimate of the number that a compiler needs. It orders defaults.
  std::int64_t registers(const Config& config) const;
  /// Returns the number available to a thread.
  std::int64_t register_limit(const Config& config) const;

 private:
  int part(const Config& config, const char* tile, const char* extent) const {
    const int whole = config[tile], most = config[extent];
    return by_warpgroups(config) && whole < most ? whole : most;
  }
  /// Returns the extent of an operand's tile in shared memory: warpgroup instructions read panels
  /// of 16, 32 or 64 elements, of which lines across k fill the last one only partly.
  std::int64_t stored_span(const Config& config, bool along_k, const char* span) const;
  double units(const Config& config, bool along_k, const char* span, const char* vec) const;
  std::int64_t tile_bytes(const Config& config, bool along_k, const char* span) const;
  std::int64_t b_tile_bytes(const Config& config) const;
  std::int64_t sums_bytes(std::int64_t lines, std::int64_t width) const;
  std::int64_t fragment_registers() const;  ///< of an operand of a product
  /// Returns the number of registers with addresses of an operand's fragments
  /// (fragment_places.hip).
  std::int64_t place_registers(const Config& config, bool along_k, const char* span,
                               const char* extent) const;
  std::int64_t sum_registers(const Config& config) const;
  std::int64_t loaded_registers(const Config& config) const;
  /// Returns the number of registers of a K step of B's fragments with DIRECT.
  std::int64_t direct_registers(const Config& config) const;

  Shape shape_;
  MatrixCores cores_;
  std::int64_t thread_registers_, workgroup_registers_;
  int wave_, element_bytes_;
  int chunk_;              ///< elements in 16 bytes
  std::int64_t bank_row_;  ///< chunks that have each bank of shared memory once
  bool splits_;
  std::vector<int> products_, copies_;
  int turning_ = 0;
};

/// Returns the parameters and constraints of `matrix` for HIP.
Alternative matrix_space(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::gemm
