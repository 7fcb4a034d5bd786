// libgreta-hip-host: the part of HIP's API that programs with compiled modules use, on hip-host's
// devices. A program is linked with it instead of libamdhip64. There is no default stream: calls
// that take a stream need one of hipStreamCreate(). Kernels get their arguments as one block, in
// `extra`. Parameters and results are HIP's.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "runtime/device/hip/host/functions.hpp"
#include "runtime/device/hip/platform.hpp"

namespace greta::device::hip::host {
namespace {

const Functions& hip() {
  static const Functions all = functions();
  return all;
}

/// Waits until a query no longer returns hipErrorNotReady.
template <typename Handle>
hipError_t wait_for(hipError_t (*query)(Handle), Handle handle) {
  hipError_t state = query(handle);
  while (state == hipErrorNotReady) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    state = query(handle);
  }
  return state;
}

/// Returns a copy of the text that stays valid: each text is kept once.
const char* kept(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

}  // namespace

extern "C" {

hipError_t hipInit(unsigned flags) {
  return flags == 0 ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipGetDeviceCount(int* count) {
  *count = device_count;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  return hip().set_device(device);
}

hipError_t hipDeviceGetName(char* name, int size, int device) {
  if (device < 0 || device >= device_count || size < 1) return hipErrorInvalidValue;
  const std::string known = host_platform()->describe(device).info.name;
  const std::size_t length = std::min(known.size(), static_cast<std::size_t>(size) - 1);
  std::memcpy(name, known.data(), length);
  name[length] = '\0';
  return hipSuccess;
}

hipError_t hipMalloc(void** pointer, std::size_t bytes) {
  return hip().hipMalloc(pointer, bytes);
}

hipError_t hipFree(void* pointer) {
  return hip().hipFree(pointer);
}

hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int, hipStream_t stream) {
  return hip().copy_async(to, from, bytes, stream);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, std::size_t count, hipStream_t stream) {
  return hip().hipMemsetD32Async(to, value, count, stream);
}

hipError_t hipStreamCreate(hipStream_t* stream) {
  return hip().hipStreamCreateWithFlags(stream, 0);
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return hip().hipStreamCreateWithFlags(stream, flags);
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  return hip().hipStreamDestroy(stream);
}

hipError_t hipStreamQuery(hipStream_t stream) {
  return hip().hipStreamQuery(stream);
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  return wait_for(hip().hipStreamQuery, stream);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return hip().hipStreamWaitEvent(stream, event, flags);
}

hipError_t hipEventCreate(hipEvent_t* event) {
  return hip().hipEventCreateWithFlags(event, hipEventDefault);
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return hip().hipEventCreateWithFlags(event, flags);
}

hipError_t hipEventDestroy(hipEvent_t event) {
  return hip().hipEventDestroy(event);
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return hip().hipEventRecord(event, stream);
}

hipError_t hipEventQuery(hipEvent_t event) {
  return hip().hipEventQuery(event);
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  return wait_for(hip().hipEventQuery, event);
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  return hip().hipEventElapsedTime(milliseconds, start, stop);
}

hipError_t hipModuleLoadData(hipModule_t* loaded, const void* image) {
  return hip().hipModuleLoadData(loaded, image);
}

hipError_t hipModuleUnload(hipModule_t loaded) {
  return hip().hipModuleUnload(loaded);
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t loaded, const char* name) {
  return hip().hipModuleGetFunction(function, loaded, name);
}

hipError_t hipModuleGetGlobal(void** address, std::size_t* bytes, hipModule_t loaded,
                              const char* name) {
  return hip().hipModuleGetGlobal(address, bytes, loaded, name);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned dynamic_shared_bytes,
                                 hipStream_t stream, void** parameters, void** extra) {
  if (parameters != nullptr || extra == nullptr) return hipErrorNotSupported;
  return hip().hipModuleLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                     dynamic_shared_bytes, stream, parameters, extra);
}

const char* hipGetErrorName(hipError_t error) {
  return kept(hip().error_name(error));
}

const char* hipGetErrorString(hipError_t error) {
  const std::string text = hip().error_string(error);
  return kept(text.empty() ? hip().error_name(error) : text);
}

}  // extern "C"

}  // namespace greta::device::hip::host
