#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/device/counters/cupti.hpp"
#include "runtime/device/hip/describe.hpp"
#include "runtime/device/hip/platform.hpp"
#include "runtime/device/refusal.hpp"
#include "runtime/device/system/dynamic_library.hpp"

namespace greta::device::hip {

namespace {

using CUdevice = int;
using CUcontext = cupti::Context;

// CUdevice_attribute.
constexpr AttributeNumbers cuda_attributes{.max_threads_per_block = 1,
                                           .max_block = {2, 3, 4},
                                           .max_grid = {5, 6, 7},
                                           .shared_per_block = 8,
                                           .shared_per_block_optin = 97,
                                           .warp_size = 10,
                                           .multiprocessors = 16,
                                           .integrated = 18,
                                           .registers = 82,
                                           .threads = 39,
                                           .shared = 81};
constexpr int compute_capability_major = 75;
constexpr int compute_capability_minor = 76;

/// The CUDA driver: functions that query its devices, and their contexts.
struct Driver {
  DynamicLibrary library;
  Functions functions;
  int version = 0;

  hipError_t (*cuInit)(unsigned flags) = nullptr;
  hipError_t (*cuDriverGetVersion)(int* version) = nullptr;
  hipError_t (*cuDeviceGetCount)(int* count) = nullptr;
  hipError_t (*cuDeviceGet)(CUdevice* device, int index) = nullptr;
  hipError_t (*cuDeviceGetAttribute)(int* value, int attribute, CUdevice device) = nullptr;
  hipError_t (*cuDeviceGetName)(char* name, int bytes, CUdevice device) = nullptr;
  hipError_t (*cuDeviceGetUuid)(unsigned char* bytes, CUdevice device) = nullptr;
  hipError_t (*cuDeviceTotalMem)(std::size_t* bytes, CUdevice device) = nullptr;
  hipError_t (*cuDeviceGetPCIBusId)(char* address, int bytes, CUdevice device) = nullptr;
  hipError_t (*cuDevicePrimaryCtxRetain)(CUcontext* context, CUdevice device) = nullptr;
  hipError_t (*cuDevicePrimaryCtxReset)(CUdevice device) = nullptr;
  hipError_t (*cuCtxSetCurrent)(CUcontext context) = nullptr;
  hipError_t (*cuDeviceCanAccessPeer)(int* can, CUdevice device, CUdevice peer) = nullptr;
  hipError_t (*cuCtxEnablePeerAccess)(CUcontext peer, unsigned flags) = nullptr;
  hipError_t (*cuMemcpyPeerAsync)(void* to, CUcontext to_context, const void* from,
                                  CUcontext from_context, std::size_t bytes,
                                  hipStream_t stream) = nullptr;
  /// Available since CUDA 12.4; nullptr in older drivers.
  hipError_t (*cuFuncGetParamInfo)(hipFunction_t function, std::size_t index, std::size_t* offset,
                                   std::size_t* bytes) = nullptr;

  std::mutex mutex;
  std::map<int, CUcontext> primary;  ///< contexts of devices that are in use

  void check(hipError_t error, const char* what) const {
    if (error == hipSuccess) return;
    throw Refusal(Status::unavailable,
                  fmt::format("{}: {}", what, describe_error(functions, error)));
  }
  hipError_t primary_context(int index, CUcontext* context);
  hipError_t set_device(int index);
  hipError_t can_access_peer(int* can, int index, int peer) const;
  hipError_t enable_peer_access(int index, int peer);
  hipError_t copy_peer(void* to, int to_index, const void* from, int from_index, std::size_t bytes,
                       hipStream_t stream);
  hipError_t reset_device(int index);
  std::optional<std::uint32_t> argument_bytes(hipFunction_t function) const;
};

hipError_t Driver::primary_context(int index, CUcontext* wanted) {
  const std::lock_guard lock(mutex);
  CUcontext& context = primary[index];
  if (context == nullptr) {
    CUdevice device = 0;
    if (const hipError_t error = cuDeviceGet(&device, index); error != hipSuccess) return error;
    const hipError_t error = cuDevicePrimaryCtxRetain(&context, device);
    if (error != hipSuccess) {
      context = nullptr;
      return error;
    }
  }
  *wanted = context;
  return hipSuccess;
}

hipError_t Driver::set_device(int index) {
  CUcontext context = nullptr;
  const hipError_t error = primary_context(index, &context);
  return error != hipSuccess ? error : cuCtxSetCurrent(context);
}

hipError_t Driver::can_access_peer(int* can, int index, int peer) const {
  CUdevice device = 0, other = 0;
  hipError_t error = cuDeviceGet(&device, index);
  if (error == hipSuccess) error = cuDeviceGet(&other, peer);
  return error != hipSuccess ? error : cuDeviceCanAccessPeer(can, device, other);
}

hipError_t Driver::enable_peer_access(int index, int peer) {
  CUcontext other = nullptr;
  hipError_t error = primary_context(peer, &other);
  if (error == hipSuccess) error = set_device(index);
  return error != hipSuccess ? error : cuCtxEnablePeerAccess(other, 0);
}

hipError_t Driver::copy_peer(void* to, int to_index, const void* from, int from_index,
                             std::size_t bytes, hipStream_t stream) {
  CUcontext to_context = nullptr, from_context = nullptr;
  hipError_t error = primary_context(to_index, &to_context);
  if (error == hipSuccess) error = primary_context(from_index, &from_context);
  return error != hipSuccess ? error
                             : cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream);
}

hipError_t Driver::reset_device(int index) {
  const std::lock_guard lock(mutex);
  primary.erase(index);
  CUdevice device = 0;
  const hipError_t error = cuDeviceGet(&device, index);
  return error != hipSuccess ? error : cuDevicePrimaryCtxReset(device);
}

std::optional<std::uint32_t> Driver::argument_bytes(hipFunction_t function) const {
  if (cuFuncGetParamInfo == nullptr) return std::nullopt;
  std::size_t end = 0, offset = 0, bytes = 0;
  for (std::size_t index = 0; cuFuncGetParamInfo(function, index, &offset, &bytes) == hipSuccess;
       ++index) {
    end = offset + bytes;
  }
  return static_cast<std::uint32_t>(end);
}

/// Returns text such as "CUDA 13.0".
std::string cuda_version_text(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

void load_cuda_functions(const DynamicLibrary& library, Functions& hip) {
  const auto load = [&](auto*& function, const char* symbol) {
    library.load(function, symbol).value();
  };
  load(hip.hipMalloc, "cuMemAlloc_v2");
  load(hip.hipFree, "cuMemFree_v2");
  load(hip.hipHostMalloc, "cuMemHostAlloc");
  load(hip.hipHostFree, "cuMemFreeHost");
  load(hip.hipMemsetD32Async, "cuMemsetD32Async");
  load(hip.hipStreamCreateWithFlags, "cuStreamCreate");
  load(hip.hipStreamDestroy, "cuStreamDestroy_v2");
  load(hip.hipStreamQuery, "cuStreamQuery");
  load(hip.hipStreamWaitEvent, "cuStreamWaitEvent");
  load(hip.hipStreamBeginCapture, "cuStreamBeginCapture_v2");
  load(hip.hipStreamEndCapture, "cuStreamEndCapture");
  load(hip.hipGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  load(hip.hipGraphLaunch, "cuGraphLaunch");
  load(hip.hipGraphExecDestroy, "cuGraphExecDestroy");
  load(hip.hipGraphDestroy, "cuGraphDestroy");
  load(hip.hipEventCreateWithFlags, "cuEventCreate");
  load(hip.hipEventDestroy, "cuEventDestroy_v2");
  load(hip.hipEventRecord, "cuEventRecord");
  load(hip.hipEventQuery, "cuEventQuery");
  load(hip.hipEventElapsedTime, "cuEventElapsedTime");
  load(hip.hipModuleLoadData, "cuModuleLoadData");
  load(hip.hipModuleUnload, "cuModuleUnload");
  load(hip.hipModuleGetFunction, "cuModuleGetFunction");
  load(hip.hipModuleGetGlobal, "cuModuleGetGlobal_v2");
  load(hip.hipFuncGetAttribute, "cuFuncGetAttribute");
  load(hip.hipModuleLaunchKernel, "cuLaunchKernel");
}

/// Returns the function that encodes tensor maps, or nothing if the driver is older than CUDA 12.
decltype(Functions::encode) tensor_maps(const DynamicLibrary& library) {
  constexpr int f16 = 6, f32 = 7, bf16 = 9;  // CUtensorMapDataType
  // Where lines of a box start within lines of the cache, promoted fetches take half as long again.
  constexpr int swizzle_128 = 3, no = 0;  // of the enumerations beside it
  hipError_t (*tiled)(void* map, int type, std::uint32_t rank, std::uint64_t address,
                      const std::uint64_t* extents, const std::uint64_t* strides,
                      const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                      int swizzle, int promotion, int fill) = nullptr;
  if (!library.load(tiled, "cuTensorMapEncodeTiled")) return {};
  return [=](const TensorMap& map, std::uint64_t address, std::byte* to) {
    // Rows in pairs are a tensor of three dimensions: the pair is the second one.
    const bool pairs = map.pair_bytes != 0;
    const std::uint32_t rank = pairs ? 3 : 2;
    const std::array<std::uint64_t, 3> extents{map.columns, pairs ? 2 : map.rows, map.rows / 2};
    const std::array<std::uint64_t, 2> strides{pairs ? map.pair_bytes : map.row_bytes,
                                               map.row_bytes};
    const bool wide = map.type == DType::f32;
    const int type = wide ? f32 : map.type == DType::bf16 ? bf16 : f16;
    const std::uint32_t usual = wide ? box_columns / 2 : box_columns;
    const std::uint32_t columns = map.plain_bytes != 0 ? map.plain_bytes / (wide ? 4 : 2) : usual;
    const std::array<std::uint32_t, 3> box{columns, pairs ? 2 : map.box_rows, map.box_rows / 2};
    const std::array<std::uint32_t, 3> steps{1, 1, 1};
    alignas(tensor_map_alignment) std::array<std::byte, tensor_map_bytes> encoded;
    const hipError_t error =
        tiled(encoded.data(), type, rank, address, extents.data(), strides.data(), box.data(),
              steps.data(), no, map.plain_bytes != 0 ? no : swizzle_128, no, no);
    std::copy(encoded.begin(), encoded.end(), to);
    return error;
  };
}

/// Returns the function that launches kernels which may begin early, or nothing if the driver is
/// older than CUDA 11.8.
decltype(Functions::launch_overlapping) overlapping_launch(const DynamicLibrary& library) {
  struct Attribute {  // CUlaunchAttribute
    int id;
    alignas(8) std::array<int, 16> value;
  };
  struct Config {  // CUlaunchConfig
    std::array<unsigned, 3> grid, block;
    unsigned shared_bytes;
    hipStream_t stream;
    Attribute* attributes;
    unsigned attribute_count;
  };
  constexpr int programmatic_stream_serialization = 6;  // CUlaunchAttributeID
  hipError_t (*launch)(const Config* config, hipFunction_t function, void** parameters,
                       void** extra) = nullptr;
  if (!library.load(launch, "cuLaunchKernelEx")) return {};
  return [=](hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
             hipStream_t stream, void** parameters, void** extra) {
    Attribute attribute{programmatic_stream_serialization, {1}};
    const Config config{
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, &attribute, 1};
    return launch(&config, function, parameters, extra);
  };
}

/// Loads the functions that need several calls of the CUDA driver, or have other arguments there.
void load_differing(const DynamicLibrary& library, Driver* driver) {
  hipError_t (*copy)(void*, const void*, std::size_t, hipStream_t) = nullptr;
  hipError_t (*set_attribute)(hipFunction_t, int, int) = nullptr;
  hipError_t (*name)(hipError_t, const char**) = nullptr;
  hipError_t (*text)(hipError_t, const char**) = nullptr;
  library.load(copy, "cuMemcpyAsync").value();
  library.load(set_attribute, "cuFuncSetAttribute").value();
  library.load(name, "cuGetErrorName").value();
  library.load(text, "cuGetErrorString").value();
  const auto describe = [](auto* function) {
    return [=](hipError_t error) {
      const char* found = nullptr;
      const bool known = function(error, &found) == hipSuccess && found != nullptr;
      return known ? std::string(found) : fmt::format("CUDA error {}", error);
    };
  };
  Functions& hip = driver->functions;
  hip.copy_async = copy;
  hip.allow_resources = [=](hipFunction_t function, int bytes) {
    const hipError_t error =
        set_attribute(function, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    // Refused where there are no clusters.
    set_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    return error;
  };
  hip.encode = tensor_maps(library);
  hip.launch_overlapping = overlapping_launch(library);
  hip.arguments_one_by_one = true;
  hip.error_name = describe(name);
  hip.error_string = describe(text);
  hip.launch_param_end = nullptr;
}

void load_queries(Driver& driver) {
  const DynamicLibrary& library = driver.library;
  library.load(driver.cuInit, "cuInit").value();
  library.load(driver.cuDriverGetVersion, "cuDriverGetVersion").value();
  library.load(driver.cuDeviceGetCount, "cuDeviceGetCount").value();
  library.load(driver.cuDeviceGet, "cuDeviceGet").value();
  library.load(driver.cuDeviceGetAttribute, "cuDeviceGetAttribute").value();
  library.load(driver.cuDeviceGetName, "cuDeviceGetName").value();
  library.load(driver.cuDeviceGetUuid, "cuDeviceGetUuid").value();
  library.load(driver.cuDeviceTotalMem, "cuDeviceTotalMem_v2").value();
  library.load(driver.cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId").value();
  library.load(driver.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain").value();
  library.load(driver.cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2").value();
  library.load(driver.cuCtxSetCurrent, "cuCtxSetCurrent").value();
  static_cast<void>(library.load(driver.cuFuncGetParamInfo, "cuFuncGetParamInfo"));
  static_cast<void>(library.load(driver.cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer"));
  static_cast<void>(library.load(driver.cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess"));
  static_cast<void>(library.load(driver.cuMemcpyPeerAsync, "cuMemcpyPeerAsync"));
}

ProbedDevice describe(const Driver& driver, int index) {
  ProbedDevice probed;
  DeviceInfo& info = probed.info;
  info.language = Language::hip;
  info.vendor = "NVIDIA";
  info.driver = cuda_version_text(driver.version);
  if (const auto module_version = kernel_module_version("nvidia"); !module_version.empty()) {
    info.driver = fmt::format("NVIDIA {}, {}", module_version, info.driver);
  }
  try {
    CUdevice device = 0;
    driver.check(driver.cuDeviceGet(&device, index), "cuDeviceGet");
    const auto read = [&](int attribute) {
      int value = 0;
      driver.check(driver.cuDeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute");
      return value;
    };
    std::array<char, 256> text{};
    driver.check(driver.cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device),
                 "cuDeviceGetName");
    info.name = text.data();
    text = {};
    driver.check(driver.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()) - 1, device),
                 "cuDeviceGetPCIBusId");
    info.card.pci_address = pci_address(text.data());
    std::array<unsigned char, 16> uuid{};
    driver.check(driver.cuDeviceGetUuid(uuid.data(), device), "cuDeviceGetUuid");
    info.card.uuid = fmt::format("{:02x}", fmt::join(uuid, ""));
    info.architecture =
        fmt::format("sm_{}{}", read(compute_capability_major), read(compute_capability_minor));
    std::size_t bytes = 0;
    driver.check(driver.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem");
    info.memory_bytes = info.max_allocation_bytes = bytes;
    describe_gpu(info, cuda_attributes, read);
    info.timestamp_period_ns = 500;  // the resolution that the CUDA driver guarantees
    probed.usable = true;
  } catch (const std::exception&) {
    probed.reason = current_failure().message;
  }
  return probed;
}

Result<std::unique_ptr<CounterReader>> open_counters(const std::shared_ptr<Driver>& driver,
                                                     int index,
                                                     const std::vector<std::string>& libraries) {
  CuptiTarget target;
  target.libraries = libraries;
  target.device = static_cast<std::size_t>(index);
  driver->check(driver->set_device(index), "cuCtxSetCurrent");
  {
    const std::lock_guard lock(driver->mutex);
    target.context = driver->primary[index];
  }
  target.enter = [driver, index] { driver->check(driver->set_device(index), "cuCtxSetCurrent"); };
  return open_cupti(std::move(target));
}

void set_peer_functions(const std::shared_ptr<Driver>& driver, Functions& hip) {
  if (driver->cuDeviceCanAccessPeer == nullptr || driver->cuCtxEnablePeerAccess == nullptr ||
      driver->cuMemcpyPeerAsync == nullptr) {
    return;
  }
  hip.can_access_peer = [driver](int* can, int index, int peer) {
    return driver->can_access_peer(can, index, peer);
  };
  hip.enable_peer_access = [driver](int index, int peer) {
    return driver->enable_peer_access(index, peer);
  };
  hip.copy_peer_async = [driver](void* to, int to_index, const void* from, int from_index,
                                 std::size_t bytes, hipStream_t stream) {
    return driver->copy_peer(to, to_index, from, from_index, bytes, stream);
  };
}

Platform open(const Libraries& libraries) {
  auto driver = std::make_shared<Driver>();
  driver->library = DynamicLibrary::open(libraries.nvidia).value();
  load_cuda_functions(driver->library, driver->functions);
  load_differing(driver->library, driver.get());
  load_queries(*driver);
  driver->library.keep_open();
  const std::string& name = driver->library.name();
  Platform platform;
  hipError_t error = driver->cuInit(0);
  if (error == hipSuccess) error = driver->cuDriverGetVersion(&driver->version);
  if (error == hipSuccess) error = driver->cuDeviceGetCount(&platform.device_count);
  if (error != hipSuccess || platform.device_count == 0) {
    throw Refusal(
        Status::unavailable,
        fmt::format("{} finds no device{}", name,
                    error == hipSuccess ? "" : ": " + describe_error(driver->functions, error)));
  }
  platform.name = "nvidia";
  platform.functions = driver->functions;
  platform.functions.set_device = [driver](int index) { return driver->set_device(index); };
  platform.functions.reset_device = [driver](int index) { return driver->reset_device(index); };
  set_peer_functions(driver, platform.functions);
  platform.describe = [driver](int index) { return hip::describe(*driver, index); };
  platform.create_compiler = create_nvidia_compiler;
  platform.open_matrix_library = open_cublaslt;
  platform.open_attention_library = open_cudnn;
  platform.open_counters = [driver, cupti = libraries.cupti](int index) {
    return hip::open_counters(driver, index, cupti);
  };
  platform.argument_bytes = [driver](std::span<const std::byte>, const std::string&,
                                     hipFunction_t function) {
    return driver->argument_bytes(function);
  };
  return platform;
}

}  // namespace

Result<Platform> nvidia_platform(const Libraries& libraries) {
  try {
    return open(libraries);
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace greta::device::hip
