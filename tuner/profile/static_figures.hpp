#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/hardware/occupancy.hpp"
#include "tuner/isa/loop_figures.hpp"

namespace greta::tuner {

/// What is known of a kernel without running it.
struct StaticKernel {
  std::string name;           ///< "gemm/tiled"
  std::uint32_t threads = 0;  ///< of a workgroup
  KernelStatistics statistics;
  std::optional<Occupancy> occupancy{};  ///< nothing: unknown for this device
  std::optional<LoopFigures> loop{};     ///< of its main loop, on AMD GPUs with matrix cores
};

/// Returns what is known of the kernels of a trial that compiled. On AMD GPUs, compiles them again
/// to examine their main loops, if a compiler lists its code.
std::vector<StaticKernel> static_kernels(const Operation& operation, const Problem& problem,
                                         const DeviceInfo& device, const Trial& trial);

/// Returns a kernel as one line: "256 threads, 128 registers, 33.0 KiB of shared memory, at most 4
/// of 16 subgroups a SIMD, by registers".
std::string static_text(const StaticKernel& kernel);
/// Returns the kernels as a JSON array, as that of greta-tune compile (docs/json.md).
nlohmann::json static_json(const std::vector<StaticKernel>& kernels);

}  // namespace greta::tuner
