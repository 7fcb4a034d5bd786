#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "runtime/device/hardware/known_gpus.hpp"
#include "runtime/device/hip/code_object.hpp"
#include "runtime/device/hip/describe.hpp"
#include "runtime/device/hip/disassembler.hpp"
#include "runtime/device/hip/platform.hpp"
#include "runtime/device/refusal.hpp"
#include "runtime/device/system/dynamic_library.hpp"

namespace greta::device::hip {

namespace {

// Numbers of hipDeviceAttribute_t, which are the same from HIP 5 to 7. HIP 5 does not support
// shared_per_block_optin, and later versions return 0: every kernel may use all shared memory.
constexpr AttributeNumbers attributes{.max_threads_per_block = 56,
                                      .max_block = {26, 27, 28},
                                      .max_grid = {29, 30, 31},
                                      .shared_per_block = 74,
                                      .shared_per_block_optin = 0,
                                      .warp_size = 87,
                                      .multiprocessors = 63,
                                      .integrated = 16,
                                      .registers = 71,
                                      .threads = 57,
                                      .shared = 10002};
constexpr int wall_clock_rate = 10017;  // kHz; since HIP 5.3

// hipDeviceProp_t has a new layout since HIP 6, with a function of its own. Only the architecture's
// name is read from it, because nothing else provides the name.
constexpr std::size_t properties_bytes = 8192;  // several times the size of either layout
constexpr std::size_t architecture_offset_6 = 1160;
constexpr std::size_t architecture_offset_5 = 396;
constexpr std::size_t architecture_bytes = 256;

/// Functions that query the runtime and its devices.
struct Runtime {
  DynamicLibrary library;
  Functions functions;
  int version = 0;

  hipError_t (*hipInit)(unsigned flags) = nullptr;
  hipError_t (*hipGetDeviceCount)(int* count) = nullptr;
  hipError_t (*hipRuntimeGetVersion)(int* version) = nullptr;
  hipError_t (*hipDeviceGetAttribute)(int* value, int attribute, int device) = nullptr;
  hipError_t (*hipDeviceGetName)(char* name, int bytes, int device) = nullptr;
  hipError_t (*hipDeviceTotalMem)(std::size_t* bytes, int device) = nullptr;
  hipError_t (*hipDeviceGetPCIBusId)(char* address, int bytes, int device) = nullptr;
  hipError_t (*hipDeviceGetUuid)(char* bytes, int device) = nullptr;  ///< may be nullptr
  hipError_t (*hipGetDeviceProperties)(char* bytes, int device) = nullptr;
  std::size_t architecture_offset = 0;  ///< offset in the properties

  void check(hipError_t error, const char* what) const {
    if (error == hipSuccess) return;
    throw Refusal(Status::unavailable,
                  fmt::format("{}: {}", what, describe_error(functions, error)));
  }
};

/// Returns text such as "HIP 6.2.41133".
std::string version_text(int version) {
  return fmt::format("HIP {}.{}.{}", version / 10'000'000, version / 100'000 % 100,
                     version % 100'000);
}

void load_functions(const DynamicLibrary& library, Functions& hip) {
  const auto load = [&](auto*& function, const char* symbol) {
    library.load(function, symbol).value();
  };
  load(hip.hipMalloc, "hipMalloc");
  load(hip.hipFree, "hipFree");
  load(hip.hipHostMalloc, "hipHostMalloc");
  load(hip.hipHostFree, "hipHostFree");
  load(hip.hipMemsetD32Async, "hipMemsetD32Async");
  load(hip.hipStreamCreateWithFlags, "hipStreamCreateWithFlags");
  load(hip.hipStreamDestroy, "hipStreamDestroy");
  load(hip.hipStreamQuery, "hipStreamQuery");
  load(hip.hipStreamWaitEvent, "hipStreamWaitEvent");
  load(hip.hipStreamBeginCapture, "hipStreamBeginCapture");
  load(hip.hipStreamEndCapture, "hipStreamEndCapture");
  load(hip.hipGraphInstantiateWithFlags, "hipGraphInstantiateWithFlags");
  load(hip.hipGraphLaunch, "hipGraphLaunch");
  load(hip.hipGraphExecDestroy, "hipGraphExecDestroy");
  load(hip.hipGraphDestroy, "hipGraphDestroy");
  load(hip.hipEventCreateWithFlags, "hipEventCreateWithFlags");
  load(hip.hipEventDestroy, "hipEventDestroy");
  load(hip.hipEventRecord, "hipEventRecord");
  load(hip.hipEventQuery, "hipEventQuery");
  load(hip.hipEventElapsedTime, "hipEventElapsedTime");
  load(hip.hipModuleLoadData, "hipModuleLoadData");
  load(hip.hipModuleUnload, "hipModuleUnload");
  load(hip.hipModuleGetFunction, "hipModuleGetFunction");
  load(hip.hipModuleGetGlobal, "hipModuleGetGlobal");
  load(hip.hipFuncGetAttribute, "hipFuncGetAttribute");
  load(hip.hipModuleLaunchKernel, "hipModuleLaunchKernel");
}

/// Loads the functions for which NVIDIA needs several calls or other arguments.
void load_differing(const DynamicLibrary& library, Functions& hip) {
  hipError_t (*set_device)(int) = nullptr;
  hipError_t (*reset)() = nullptr;
  hipError_t (*copy)(void*, const void*, std::size_t, int, hipStream_t) = nullptr;
  const char* (*name)(hipError_t) = nullptr;
  const char* (*text)(hipError_t) = nullptr;
  library.load(set_device, "hipSetDevice").value();
  library.load(reset, "hipDeviceReset").value();
  library.load(copy, "hipMemcpyAsync").value();
  library.load(name, "hipGetErrorName").value();
  library.load(text, "hipGetErrorString").value();
  hip.set_device = set_device;
  hip.reset_device = [=](int device) {
    const hipError_t error = set_device(device);
    return error != hipSuccess ? error : reset();
  };
  hip.copy_async = [=](void* to, const void* from, std::size_t bytes, hipStream_t stream) {
    constexpr int hipMemcpyDefault = 4;
    return copy(to, from, bytes, hipMemcpyDefault, stream);
  };
  hipError_t (*can_access)(int*, int, int) = nullptr;
  hipError_t (*enable)(int, unsigned) = nullptr;
  hipError_t (*copy_peer)(void*, int, const void*, int, std::size_t, hipStream_t) = nullptr;
  if (library.load(can_access, "hipDeviceCanAccessPeer") &&
      library.load(enable, "hipDeviceEnablePeerAccess") &&
      library.load(copy_peer, "hipMemcpyPeerAsync")) {
    hip.can_access_peer = can_access;
    hip.enable_peer_access = [=](int device, int peer) {
      const hipError_t error = set_device(device);
      return error != hipSuccess ? error : enable(peer, 0);
    };
    hip.copy_peer_async = copy_peer;
  }
  hip.error_name = [=](hipError_t error) { return std::string(name(error)); };
  hip.error_string = [=](hipError_t error) { return std::string(text(error)); };
  hip.launch_param_end = HIP_LAUNCH_PARAM_END;
}

void load_queries(Runtime& runtime) {
  const DynamicLibrary& library = runtime.library;
  library.load(runtime.hipInit, "hipInit").value();
  library.load(runtime.hipGetDeviceCount, "hipGetDeviceCount").value();
  library.load(runtime.hipRuntimeGetVersion, "hipRuntimeGetVersion").value();
  library.load(runtime.hipDeviceGetAttribute, "hipDeviceGetAttribute").value();
  library.load(runtime.hipDeviceGetName, "hipDeviceGetName").value();
  library.load(runtime.hipDeviceTotalMem, "hipDeviceTotalMem").value();
  library.load(runtime.hipDeviceGetPCIBusId, "hipDeviceGetPCIBusId").value();
  static_cast<void>(library.load(runtime.hipDeviceGetUuid, "hipDeviceGetUuid"));
  runtime.architecture_offset = architecture_offset_6;
  if (library.load(runtime.hipGetDeviceProperties, "hipGetDevicePropertiesR0600")) return;
  runtime.architecture_offset = architecture_offset_5;
  library.load(runtime.hipGetDeviceProperties, "hipGetDeviceProperties").value();
}

/// Returns "gfx90a" for "gfx90a:sramecc+:xnack-". If the library does not report the architecture,
/// it is looked up in tables by the device's name.
std::string find_architecture(const Runtime& runtime, int device, const std::string& name) {
  std::vector<char> properties(properties_bytes);
  if (runtime.hipGetDeviceProperties(properties.data(), device) == hipSuccess) {
    const char* const start = properties.data() + runtime.architecture_offset;
    std::string text(start, strnlen(start, architecture_bytes));
    if (text.starts_with("gfx")) return text.substr(0, text.find(':'));
  }
  const std::string known = gpu_architecture(name);
  if (known.starts_with("gfx")) return known;
  throw Refusal(Status::unavailable, "its architecture is not known");
}

/// Returns the card's serial number, which is 16 hexadecimal digits as text. Cards without one get
/// the UUID that Mesa's drivers derive from the PCI address.
std::string find_uuid(const Runtime& runtime, int device, const std::string& pci) {
  std::array<char, 16> bytes{};
  const bool serial = runtime.hipDeviceGetUuid != nullptr &&
                      runtime.hipDeviceGetUuid(bytes.data(), device) == hipSuccess &&
                      std::all_of(bytes.begin(), bytes.end(),
                                  [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!serial) {
    std::array<std::uint32_t, 4> numbers{};
    std::sscanf(pci.c_str(), "%x:%x:%x.%x", &numbers[0], &numbers[1], &numbers[2], &numbers[3]);
    std::memcpy(bytes.data(), numbers.data(), sizeof numbers);
  }
  std::string uuid;
  for (const char byte : bytes) uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return uuid;
}

ProbedDevice describe(const Runtime& runtime, int device) {
  ProbedDevice probed;
  DeviceInfo& info = probed.info;
  info.language = Language::hip;
  info.vendor = "AMD";
  info.driver = version_text(runtime.version);
  if (const auto module_version = kernel_module_version("amdgpu"); !module_version.empty()) {
    info.driver += ", amdgpu " + module_version;
  }
  try {
    const auto read = [&](int attribute) {
      int value = 0;
      runtime.check(runtime.hipDeviceGetAttribute(&value, attribute, device),
                    "hipDeviceGetAttribute");
      return value;
    };
    std::array<char, 256> text{};
    runtime.check(runtime.hipDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device),
                  "hipDeviceGetName");
    info.name = text.data();
    text = {};
    runtime.check(
        runtime.hipDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()) - 1, device),
        "hipDeviceGetPCIBusId");
    info.card.pci_address = pci_address(text.data());
    info.card.uuid = find_uuid(runtime, device, info.card.pci_address);
    info.architecture = find_architecture(runtime, device, info.name);
    if (info.name.empty()) info.name = "AMD " + info.architecture;
    std::size_t bytes = 0;
    runtime.check(runtime.hipDeviceTotalMem(&bytes, device), "hipDeviceTotalMem");
    info.memory_bytes = info.max_allocation_bytes = bytes;
    describe_gpu(info, attributes, read);
    // From RDNA on, HIP counts workgroup processors, each of which contains two compute units.
    if (info.subgroup_size == 32) info.compute_units *= 2;
    int kilohertz = 0;
    const bool told =
        runtime.hipDeviceGetAttribute(&kilohertz, wall_clock_rate, device) == hipSuccess;
    info.timestamp_period_ns = told && kilohertz > 0 ? 1e6 / kilohertz : 10;
    probed.usable = true;
  } catch (const std::exception&) {
    probed.reason = current_failure().message;
  }
  return probed;
}

/// Opens the counters of a device, given what rocprofiler::configure() answered.
Result<std::unique_ptr<CounterReader>> open_counters(const Runtime& runtime,
                                                     const Result<rocprofiler::Session*>& library,
                                                     int device) {
  if (!library) return library.failure();
  const DeviceInfo info = describe(runtime, device).info;
  return rocprofiler::open(**library,
                           {.pci_address = info.card.pci_address, .chip = info.architecture});
}

Platform open(const Libraries& libraries, bool counters) {
  const Result<rocprofiler::Session*> session =
      counters
          ? rocprofiler::configure(libraries.rocprofiler)
          : Result<rocprofiler::Session*>(Failure{Status::unavailable,
                                                  "the device was opened without counters, which "
                                                  "rocprofiler-sdk must prepare before HIP starts",
                                                  {}});
  auto runtime = std::make_shared<Runtime>();
  runtime->library = DynamicLibrary::open(libraries.amd).value();
  load_functions(runtime->library, runtime->functions);
  load_differing(runtime->library, runtime->functions);
  load_queries(*runtime);
  runtime->library.keep_open();
  const std::string& name = runtime->library.name();
  runtime->check(runtime->hipRuntimeGetVersion(&runtime->version), "hipRuntimeGetVersion");
  if (runtime->version / 10'000'000 < 5 || runtime->version / 10'000'000 > 7) {
    throw Refusal(Status::unavailable, fmt::format("{} is {}, and GRETA knows HIP 5 to 7", name,
                                                   version_text(runtime->version)));
  }
  Platform platform;
  hipError_t error = runtime->hipInit(0);
  if (error == hipSuccess) error = runtime->hipGetDeviceCount(&platform.device_count);
  if (error != hipSuccess || platform.device_count == 0) {
    throw Refusal(
        Status::unavailable,
        fmt::format("{} ({}) finds no device{}", name, version_text(runtime->version),
                    error == hipSuccess ? "" : ": " + describe_error(runtime->functions, error)));
  }
  platform.name = "amd";
  platform.functions = runtime->functions;
  platform.max_threads_per_axis = UINT32_MAX;
  platform.describe = [runtime](int device) { return hip::describe(*runtime, device); };
  platform.create_compiler = create_amd_compiler;
  platform.open_matrix_library = open_hipblaslt;
  platform.read_statistics = read_statistics;
  platform.disassemble = disassemble;
  platform.open_counters = [runtime, session](int device) {
    return open_counters(*runtime, session, device);
  };
  platform.argument_bytes = [](std::span<const std::byte> code_object, const std::string& entry,
                               hipFunction_t) -> std::optional<std::uint32_t> {
    return read_argument_bytes(code_object, entry).value();
  };
  return platform;
}

}  // namespace

Result<Platform> amd_platform(const Libraries& libraries, bool counters) {
  try {
    return open(libraries, counters);
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace greta::device::hip
