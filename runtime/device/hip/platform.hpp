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
#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/hip/functions.hpp"

namespace greta::device::hip {

/// A library through which devices are reached with HIP's functions.
struct Platform {
  std::string name;  ///< "amd", "nvidia", "host"
  Functions functions;
  int device_count = 0;
  /// The most threads of all workgroups together in one dimension.
  std::uint64_t max_threads_per_axis = UINT64_MAX;
  /// Everything that is known about device 0 … device_count - 1; never fails. The backend's name
  /// and the index within the backend are the caller's to fill in, and so is DeviceInfo::compiler.
  std::function<ProbedDevice(int device)> describe;
  /// The compiler of this platform's devices. Fails with `unavailable` where there is none.
  std::function<Result<std::unique_ptr<Compiler>>(const OpenOptions& options)> create_compiler;
  /// What a code object says about a kernel; empty where only the loaded function does.
  std::function<Result<KernelStatistics>(std::span<const std::byte> code_object,
                                         const std::string& entry)>
      read_statistics;
  /// Bytes of the argument block that a loaded kernel takes; nothing where nobody tells.
  std::function<std::optional<std::uint32_t>(std::span<const std::byte> code_object,
                                             const std::string& entry, hipFunction_t function)>
      argument_bytes;
  /// A code object's machine code as text; empty where there is no way to it.
  std::function<Result<std::string>(std::span<const std::byte> code_object,
                                    const OpenOptions& options)>
      disassemble;
};

/// Names and paths of libraries, tried in this order; tests name their own.
struct Libraries {
  std::vector<std::string> amd{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                               "libamdhip64.so"};
  std::vector<std::string> nvidia{"libcuda.so.1"};
};

/// Opens a platform's library. Fails with `unavailable` and the reason: it is not there, lacks a
/// function, is of an unknown version, or finds no device.
Result<Platform> amd_platform(const std::vector<std::string>& libraries);
Result<Platform> nvidia_platform(const std::vector<std::string>& libraries);
/// This project's emulator; defined in host/.
Result<Platform> host_platform();

}  // namespace greta::device::hip
