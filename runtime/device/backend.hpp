#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device.hpp"

namespace greta::device {

/// A device that a backend lists, and whether it can execute kernels.
struct ProbedDevice {
  DeviceInfo info;
  bool usable = false;
  std::string reason;         ///< why it is not usable, or a note ("runs on the CPU"); may be empty
  bool compile_only = false;  ///< not usable, but can be opened with OpenOptions::compile_only
  bool sanitizes = false;     ///< can be opened with OpenOptions::sanitize; other devices refuse it
  /// Not usable, but can be opened with OpenOptions::without_compiler.
  bool lacks_compiler = false;
};

/// The result of probing a backend on this machine.
struct Probe {
  bool available = false;
  std::string reason;  ///< why the backend is absent; empty when available
  std::vector<ProbedDevice> devices;
  std::vector<std::string> missing;  ///< absent platforms, and why: "amd: no libra…"
};

/// What kernels on hip-host are built to find, beyond what it always detects. A kernel can't be
/// built for both.
enum class Sanitize {
  none,
  address,  ///< AddressSanitizer and UndefinedBehaviorSanitizer
  races,    ///< races in shared memory
};

/// Options for opening a device. Only the command line reads the environment; the layers below it
/// get everything through these options.
struct OpenOptions {
  std::filesystem::path cache_directory;  ///< holds compiled kernels; empty: no disk cache
  bool validation = false;                ///< enables API validation layers where available
  std::function<void(std::string_view)> on_validation_message;  ///< called for each message
  Deadline transfer_deadline = std::chrono::seconds(60);        ///< for upload() and download()
  Deadline compile_deadline = std::chrono::seconds(120);  ///< for compilers that are processes
  /// Vulkan only: a CPU's device without cooperative matrices has some, which kernels emulate in
  /// plain arithmetic. This checks kernels; their times say nothing.
  bool emulated_matrices = false;
  bool compile_only = false;           ///< also opens devices that compile but cannot execute
  Sanitize sanitize = Sanitize::none;  ///< hip-host only
  /// Also opens devices without a compiler for their kernels, which run only kernels that were
  /// compiled elsewhere (Device::load). "auto" and a part of a name prefer other devices.
  bool without_compiler = false;
  /// Opens the device to count what its kernels do (open_counters). The process must time nothing.
  bool counters = false;
  /// Opens the vendor's library of matrix products, too, if it is installed: hipBLASLt or cuBLASLt.
  bool vendor = false;
  /// A clang that compiles HIP or, for hip-host, C++. If it is empty, one is searched for.
  std::filesystem::path compiler;
  /// The path of greta-compile-helper, which runs hiprtc and NVRTC. If it is empty, the helper is
  /// expected beside the running program.
  std::filesystem::path compile_helper;
};

/// One API that gives access to devices.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Api api() const = 0;
  /// Lists devices. Never fails: a missing library or driver is reported as a reason.
  virtual Probe probe() = 0;
  /// Says that devices will be opened with OpenOptions::counters. Some drivers have to know before
  /// they start, so it comes before every other call of the process; later, it changes nothing.
  virtual void prepare_counters() {}
  virtual Result<std::unique_ptr<Device>> open(int index, const OpenOptions& options) = 0;
};

/// Returns every backend that GRETA was built with, in order of preference.
const std::vector<Backend*>& backends();

/// Finds a device: "auto" (the best real GPU, otherwise a CPU device), "vulkan:0", "vulkan" (the
/// first usable one of that backend), a card's PCI address or UUID, alone or as in
/// "vulkan:0000:c1:00.0", or a part of a device's name or architecture, case-insensitive. Fails
/// with `unavailable` and a message that lists the devices there are. "auto" never selects a device
/// that can't execute kernels. The id of a device loads no drivers of other backends.
Result<ProbedDevice> select_device(std::string_view wanted);
/// Finds a device in the same way among the given backends.
Result<ProbedDevice> select_device(std::string_view wanted, const std::vector<Backend*>& among);

/// Finds a device in the same way that can be opened with these options.
Result<ProbedDevice> select_device(std::string_view wanted, const OpenOptions& options);

/// Selects a device with select_device() and opens it.
Result<std::unique_ptr<Device>> open_device(std::string_view wanted, const OpenOptions& options);

/// Opens Mesa's AMD driver for a GPU that is not installed, to compile GLSL for it. The GPU is
/// named "gfx1103_r1", "navi21", or by another of that driver's names. The driver reads the GPU
/// from the environment variable RADV_FORCE_FAMILY, which must be set to the same name. Call this
/// function before other threads start: it first tries the driver in a fork of the process. Fails
/// with `unavailable` where the driver is missing, does not support the GPU, or was given another
/// name. Works with Mesa 22 to 25; later releases have no such GPUs.
Result<std::unique_ptr<Device>> open_null_hardware(std::string_view gpu, OpenOptions options);

/// Returns the names that releases of Mesa use for a GPU, the given one first: Debian 12's
/// "gfx1103_r1" is "phoenix" in later ones.
std::vector<std::string> null_hardware_names(std::string_view gpu);

}  // namespace greta::device
