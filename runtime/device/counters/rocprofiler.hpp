#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/counter_reader.hpp"

namespace greta::device::rocprofiler {

/// rocprofiler-sdk in this process, which counts the dispatches of AMD GPUs.
class Session;

/// Names and paths of rocprofiler-sdk, tried in this order.
std::vector<std::string> default_libraries();

/// Opens rocprofiler-sdk (0.6 or later, ROCm 6.4) and makes it count each dispatch that is asked
/// for. It must be called before HIP starts, and once in a process. Fails with `unavailable` and
/// the reason. The result lives until the process ends, as the library calls it.
Result<Session*> configure(const std::vector<std::string>& libraries);

/// A GPU whose counters are wanted.
struct Target {
  std::string pci_address;  ///< "0000:c1:00.0"
  std::string chip;         ///< "gfx942"
};

/// Opens the counters of a GPU. Work is counted by dispatches: nothing between them is.
///
/// Each hardware counter has a value for each instance of its block. CounterReader::read() takes
/// names with what to make of them:
///
///   SQ_WAVES.sum         the sum over instances and dispatches
///   GRBM_GUI_ACTIVE.max  the largest of the instances, summed over dispatches
///   dispatch.ns          the dispatches' time in nanoseconds, as the GPU's clock tells it
///   agent.cu_count       a number of the GPU: also simd_per_cu, max_waves_per_simd, num_xcc
///
/// Counters are grouped into as few passes as the hardware takes them.
Result<std::unique_ptr<CounterReader>> open(Session& library, const Target& target);

}  // namespace greta::device::rocprofiler
