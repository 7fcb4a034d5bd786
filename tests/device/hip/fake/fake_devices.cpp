// The part of a fake library that describes and selects itself and its devices.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/device/hip/fake/fake_memory.hpp"
#include "tests/device/hip/fake/fake_state.hpp"
#include "tests/device/hip/fake/fake_stream.hpp"

using namespace greta::test;

namespace {

/// Begins a call that names a device.
Call about(int device, const char* name) {
  Call call(name, false);
  if (device < 0 || device >= fake.devices) {
    call.fail(call.misused("of a device that is not there", invalid_device));
  }
  return call;
}

int put_text(const Call& call, char* to, int bytes, const std::string& text) {
  std::strncpy(to, text.c_str(), static_cast<std::size_t>(bytes));
  return call.error();
}

}  // namespace

extern "C" {

FakeHip* greta_fake_hip() {
  return &fake;
}

int NAME(hipInit, cuInit)(unsigned flags) {
  const Call call("hipInit", false);
  if (flags != 0) return call.misused("flags that are not 0");
  return call.error() != success ? call.error() : fake.init_error;
}
int NAME(hipGetDeviceCount, cuDeviceGetCount)(int* count) {
  const Call call("hipGetDeviceCount", false);
  *count = fake.devices;
  return call.error();
}
int NAME(hipDeviceGetAttribute, cuDeviceGetAttribute)(int* value, int attribute, int device) {
  const Call call = about(device, "hipDeviceGetAttribute");
  if (call.error() != success) return call.error();
  const auto found = fake.attributes.find(attribute);
  if (found == fake.attributes.end()) return invalid_value;
  *value = found->second;
  return success;
}
int NAME(hipDeviceGetName, cuDeviceGetName)(char* name, int bytes, int device) {
  return put_text(about(device, "hipDeviceGetName"), name, bytes, fake.name);
}
int NAME(hipDeviceGetPCIBusId, cuDeviceGetPCIBusId)(char* address, int bytes, int device) {
  return put_text(about(device, "hipDeviceGetPCIBusId"), address, bytes, fake.pci);
}
int NAME(hipDeviceTotalMem, cuDeviceTotalMem_v2)(std::size_t* bytes, int device) {
  const Call call = about(device, "hipDeviceTotalMem");
  *bytes = fake.memory_bytes;
  return call.error();
}

#ifndef FAKE_CUDA
int hipDeviceCanAccessPeer(int* can, int device, int peer) {
  const Call call = about(device, "hipDeviceCanAccessPeer");
  if (peer < 0 || peer >= fake.devices || peer == device) return invalid_device;
  *can = 1;
  return call.error();
}
int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  const Call call = about(peer, "hipDeviceEnablePeerAccess");
  if (flags != 0) return call.misused("flags that are not 0");
  return call.error();
}
#endif

#if defined(FAKE_CUDA) || FAKE_HIP == 6
int NAME(hipDeviceGetUuid, cuDeviceGetUuid)(char* bytes, int device) {
  const Call call = about(device, "hipDeviceGetUuid");
  std::memcpy(bytes, fake.serial.data(), std::min<std::size_t>(16, fake.serial.size()));
  return call.error();
}
#endif

/// Destroys everything on the device.
static int reset(const Call& call, int device) {
  ++fake.resets[device];
  if (fake.gone || call.error() != success) return launch_failure;
  if (!finish_all(call)) return launch_failure;
  fake.sticking.erase(device);
  for (auto object = objects.begin(); object != objects.end();) {
    const bool there = object->second.device == device;
    if (there) --fake.live[object->second.ended_by];
    object = there ? objects.erase(object) : std::next(object);
  }
  free_all(device);
  return fake.reset_error;
}

#ifdef FAKE_CUDA
int cuDriverGetVersion(int* version) {
  const Call call("hipRuntimeGetVersion", false);
  *version = fake.version;
  return call.error();
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return success;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  const Call call = about(device, "hipSetDevice");
  *context = reinterpret_cast<void*>(static_cast<std::intptr_t>(device + 1));
  return call.error();
}
int cuCtxSetCurrent(void* context) {
  const Call call("hipSetDevice", false);
  if (call.error() != success) return call.error();
  current_device = static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1;
  return success;
}
int cuDevicePrimaryCtxReset_v2(int device) {
  return reset(Call("hipDeviceReset", false), device);
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_UNKNOWN";
  return success;
}
int cuGetErrorString(int error, const char** text) {
  *text = "an error";
  return error == 700 ? success : invalid_value;
}
/// Parameters of 8, 4 and 4 bytes.
int cuFuncGetParamInfo(void*, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  if (index > 2) return invalid_value;
  *offset = index == 0 ? 0 : 4 + 4 * index;
  *bytes = index == 0 ? 8 : 4;
  return success;
}
int cuFuncSetAttribute(void*, int attribute, int value) {
  const Call call("hipFuncSetAttribute");
  if (call.error() != success) return call.error();
  if (attribute == 8) fake.allowed_dynamic_shared = value;
  return success;
}
#else
int hipRuntimeGetVersion(int* version) {
  const Call call("hipRuntimeGetVersion", false);
  *version = fake.version;
  return call.error();
}
int hipSetDevice(int device) {
  const Call call = about(device, "hipSetDevice");
  if (call.error() != success) return call.error();
  current_device = device;
  return success;
}
int hipDeviceReset() {
  return reset(Call("hipDeviceReset", false), current_device);
}
const char* hipGetErrorName(int error) {
  const Call call("hipGetErrorName", false);
  static const std::map<int, const char*> names{{invalid_value, "hipErrorInvalidValue"},
                                                {out_of_memory, "hipErrorOutOfMemory"},
                                                {no_context, "hipErrorInvalidContext"},
                                                {no_binary_for_gpu, "hipErrorNoBinaryForGpu"},
                                                {invalid_handle, "hipErrorInvalidHandle"},
                                                {700, "hipErrorIllegalAddress"},
                                                {out_of_resources, "hipErrorLaunchOutOfResources"},
                                                {launch_failure, "hipErrorLaunchFailure"}};
  const auto found = names.find(error);
  return found == names.end() ? "hipErrorX" : found->second;
}
const char* hipGetErrorString(int error) {
  const Call call("hipGetErrorString", false);
  return error == 700 ? "an illegal memory access was encountered" : hipGetErrorName(error);
}
/// The structure of HIP 5.
int hipGetDeviceProperties(char* to, int device) {
  const Call call = about(device, "hipGetDeviceProperties");
  if (call.error() != success) return call.error();
  std::memset(to, 0x5a, 792);
  std::strcpy(to + 396, fake.architecture.c_str());
  return success;
}
#if FAKE_HIP == 6
int hipGetDevicePropertiesR0600(char* to, int device) {
  ++fake.calls["hipGetDevicePropertiesR0600"];
  const Call call = about(device, "hipGetDeviceProperties");
  if (call.error() != success) return call.error();
  std::memset(to, 0x5a, 1472);
  std::strcpy(to + 1160, fake.architecture.c_str());
  return success;
}
#endif
#endif

}  // extern "C"
