#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/model/launch_work.hpp"
#include "kernels/model/space.hpp"
#include "kernels/planning/cooperative_operations.hpp"

/// Tiles of products by cooperative matrices, as matrix_memory.glsl and matrix_products.glsl have
/// them, with the parameters BM, BN, WM, WN, BK, INSTR, PAD, STAGES and SUBGROUP.
namespace greta::kernels::gemm {

/// What differs between kernels.
struct CooperativeTiles {
  bool a_along_k = true, b_along_k = true;  ///< whether lines of tiles are along K
  /// Returns the registers of a thread that hold what is loaded while a step is multiplied.
  std::function<std::int64_t(const Config&)> loaded;
  /// Parameters that `loaded` reads, and PARTS if there is that parameter: tiles of B in a stage.
  std::vector<std::string> further{};

  std::int64_t shared_bytes(const Config& config, const MatrixOperation& operation) const;
  /// Returns an estimate of a thread's 32-bit registers: accumulators, one row of A's fragments and
  /// two of B's, loads in flight, addresses.
  std::int64_t registers(const Config& config, const MatrixOperation& operation) const;
};

auto subgroups_of(const auto& c) {
  return c["BM"] / c["WM"] * (c["BN"] / c["WN"]);
}

/// Returns the threads of a workgroup.
auto cooperative_threads(const auto& c) {
  return subgroups_of(c) * c["SUBGROUP"];
}

/// Rejects tiles that products do not divide, and those that do not fit the device.
std::vector<Constraint> cooperative_constraints(const CooperativeTiles& tiles,
                                                const DeviceInfo& device,
                                                const std::vector<MatrixOperation>& products);

/// Returns cooperative_cpu_constraints() of kernels that walk `k` elements, in SPLIT slices if that
/// is a parameter.
std::vector<Constraint> tiles_cpu_constraints(const CooperativeTiles& tiles,
                                              const DeviceInfo& device,
                                              const std::vector<MatrixOperation>& products,
                                              std::int64_t k, bool has_slices);

/// Sets what the workgroups of such kernels do besides loads and stores. Requires work.steps.
void set_cooperative_work(LaunchWork& work, const CooperativeTiles& tiles, const Config& config,
                          const MatrixOperation& operation);

}  // namespace greta::kernels::gemm
