#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/device/counters/cupti.hpp"
#include "runtime/device/counters/rocprofiler.hpp"
#include "runtime/device/hip/attention_library.hpp"
#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/hip/functions.hpp"
#include "runtime/device/hip/matrix_library.hpp"

namespace greta::device::hip {

/// A library that gives access to devices through HIP's functions.
struct Platform {
  std::string name;  ///< "amd", "nvidia", "host"
  Functions functions;
  int device_count = 0;
  /// The maximum number of threads of all workgroups together in one dimension.
  std::uint64_t max_threads_per_axis = UINT64_MAX;
  /// Describes device 0 … device_count - 1. Never fails. The caller fills in the backend's name,
  /// the index within the backend, and DeviceInfo::compiler.
  std::function<ProbedDevice(int device)> describe;
  /// Creates the compiler of this platform's devices. Fails with `unavailable` if there is none.
  std::function<Result<std::unique_ptr<Compiler>>(const OpenOptions& options)> create_compiler;
  /// Opens the vendor's library of matrix products. Fails with `unavailable` and the reason.
  std::function<Result<std::shared_ptr<const MatrixLibrary>>()> open_matrix_library;
  /// Opens the vendor's library of attention. Fails with `unavailable` and the reason; empty if
  /// none is used.
  std::function<Result<std::shared_ptr<const AttentionLibrary>>()> open_attention_library;
  /// Reads a kernel's statistics from a code object. Empty if only the loaded function provides
  /// them.
  std::function<Result<KernelStatistics>(std::span<const std::byte> code_object,
                                         const std::string& entry)>
      read_statistics;
  /// Returns the size in bytes of a loaded kernel's argument block, or nothing if it is not known.
  std::function<std::optional<std::uint32_t>(std::span<const std::byte> code_object,
                                             const std::string& entry, hipFunction_t function)>
      argument_bytes;
  /// Returns a code object's machine code as text. Empty if the platform has no disassembler.
  std::function<Result<std::string>(std::span<const std::byte> code_object,
                                    const OpenOptions& options)>
      disassemble;
  /// Opens the hardware counters of a device, which is the current one. Fails with `unavailable`
  /// and the reason. Empty if the platform has none.
  std::function<Result<std::unique_ptr<CounterReader>>(int device)> open_counters;
};

/// Names and paths of libraries, tried in this order. Tests provide their own.
struct Libraries {
  std::vector<std::string> amd{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                               "libamdhip64.so"};
  std::vector<std::string> nvidia{"libcuda.so.1"};
  std::vector<std::string> cupti = CuptiTarget::default_libraries();  ///< of NVIDIA's counters
  std::vector<std::string> rocprofiler = rocprofiler::default_libraries();  ///< of AMD's counters
};

/// Opens a platform's library. Fails with `unavailable` and the reason: the library is missing,
/// lacks a function, has an unsupported version, or finds no device. If AMD's devices are to be
/// counted, their counters' library is opened first, since it must come before HIP.
Result<Platform> amd_platform(const Libraries& libraries, bool counters = false);
Result<Platform> nvidia_platform(const Libraries& libraries);
/// Returns GRETA's emulator, which is defined in host/.
Result<Platform> host_platform();

}  // namespace greta::device::hip
