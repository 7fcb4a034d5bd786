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
  std::string reason;  ///< why it is not usable, or a remark ("runs on the CPU"); may be empty
  bool compile_only = false;  ///< not usable, but OpenOptions::compile_only opens it
  bool sanitizes = false;     ///< OpenOptions::sanitize opens it; elsewhere that is refused
};

/// What a backend found on this machine.
struct Probe {
  bool available = false;
  std::string reason;  ///< why the backend is absent; empty when available
  std::vector<ProbedDevice> devices;
  std::vector<std::string> missing;  ///< platforms that are not there, and why: "amd: no libra…"
};

/// How a device is opened. Nothing below the command line reads the environment; these do instead.
struct OpenOptions {
  std::filesystem::path cache_directory;  ///< compiled kernels; empty: no disk cache
  bool validation = false;                ///< API validation layers, where there are any
  std::function<void(std::string_view)> on_validation_message;  ///< called for each message
  Deadline transfer_deadline = std::chrono::seconds(60);        ///< of upload() and download()
  Deadline compile_deadline = std::chrono::seconds(120);  ///< where compilers are own processes
  bool compile_only = false;       ///< also opens devices that compile but execute nothing
  bool sanitize = false;           ///< hip-host: kernels run under AddressSanitizer and UBSan
  std::filesystem::path compiler;  ///< a clang that compiles HIP, or (hip-host) C++; empty: found
  /// greta-compile-helper, which runs hiprtc and NVRTC; empty: found beside the running program
  std::filesystem::path compile_helper;
};

/// One API through which devices are reached.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  ///< "vulkan"
  /// Lists devices. Never fails: a missing library or driver is a reason.
  virtual Probe probe() = 0;
  virtual Result<std::unique_ptr<Device>> open(int index, const OpenOptions& options) = 0;
};

/// Every backend GRETA was built with: the explicit list, in the order of preference.
const std::vector<Backend*>& backends();

/// Finds a device: "auto" (the best real GPU, else a CPU device), "vulkan:0", or a part of a
/// device's name or architecture, case-insensitive. Fails with `unavailable` and a message that
/// names what there is. "auto" never picks a device that can't execute.
Result<ProbedDevice> select_device(std::string_view wanted);
/// The same among given backends.
Result<ProbedDevice> select_device(std::string_view wanted, const std::vector<Backend*>& among);

/// select_device, then open.
Result<std::unique_ptr<Device>> open_device(std::string_view wanted, const OpenOptions& options);

/// Opens Mesa's AMD driver for a GPU that is not there, to compile GLSL for it: "gfx1103_r1",
/// "navi21", or another of that driver's names. The driver takes the GPU from the process's
/// environment, RADV_FORCE_FAMILY, which must say the same. To be called before other threads run:
/// a copy of the process tries it first. Fails with `unavailable` where the driver is missing, does
/// not know the GPU, or was told another. Works with Mesa 22 to 25; later ones have no such GPUs.
Result<std::unique_ptr<Device>> open_null_hardware(std::string_view gpu, OpenOptions options);

/// The names that releases of Mesa have for a GPU, the given one first: Debian 12's "gfx1103_r1" is
/// "phoenix" in later ones.
std::vector<std::string> null_hardware_names(std::string_view gpu);

}  // namespace greta::device
