// What a fake library says of itself and its devices, and how one is chosen.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/device/hip/fake/fake_state.hpp"

namespace greta::test {

FakeHip fake;
thread_local int current_device = -1;

int begin(const char* name, bool needs_device) {
  ++fake.calls[name];
  if (const auto found = fake.fails.find(name); found != fake.fails.end()) return found->second;
  if (!needs_device) return success;
  if (current_device < 0) return no_context;
  const auto sticking = fake.sticking.find(current_device);
  return sticking != fake.sticking.end() ? sticking->second : success;
}

}  // namespace greta::test

using namespace greta::test;

namespace {

int put_text(char* to, int bytes, const std::string& text) {
  std::strncpy(to, text.c_str(), static_cast<std::size_t>(bytes));
  return success;
}

}  // namespace

extern "C" {

FakeHip* greta_fake_hip() {
  return &fake;
}

int NAME(hipInit, cuInit)(unsigned) {
  return fake.init_error;
}
int NAME(hipGetDeviceCount, cuDeviceGetCount)(int* count) {
  *count = fake.devices;
  return begin("hipGetDeviceCount", false);
}
int NAME(hipDeviceGetAttribute, cuDeviceGetAttribute)(int* value, int attribute, int) {
  if (const int error = begin("hipDeviceGetAttribute", false)) return error;
  const auto found = fake.attributes.find(attribute);
  if (found == fake.attributes.end()) return invalid_value;
  *value = found->second;
  return success;
}
int NAME(hipDeviceGetName, cuDeviceGetName)(char* name, int bytes, int) {
  const int error = begin("hipDeviceGetName", false);
  return error != success ? error : put_text(name, bytes, fake.name);
}
int NAME(hipDeviceGetPCIBusId, cuDeviceGetPCIBusId)(char* address, int bytes, int) {
  return put_text(address, bytes, fake.pci);
}
int NAME(hipDeviceTotalMem, cuDeviceTotalMem_v2)(std::size_t* bytes, int) {
  *bytes = fake.memory_bytes;
  return success;
}

#if defined(FAKE_CUDA) || FAKE_HIP == 6
int NAME(hipDeviceGetUuid, cuDeviceGetUuid)(char* bytes, int) {
  std::memcpy(bytes, fake.serial.data(), std::min<std::size_t>(16, fake.serial.size()));
  return success;
}
#endif

#ifdef FAKE_CUDA
int cuDriverGetVersion(int* version) {
  *version = fake.version;
  return success;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return success;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (const int error = begin("hipSetDevice", false)) return error;
  *context = reinterpret_cast<void*>(static_cast<std::intptr_t>(device + 1));
  return success;
}
int cuCtxSetCurrent(void* context) {
  if (const int error = begin("hipSetDevice", false)) return error;
  current_device = static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1;
  return success;
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
  if (const int error = begin("hipFuncSetAttribute")) return error;
  if (attribute == 8) fake.allowed_dynamic_shared = value;
  return success;
}
#else
int hipRuntimeGetVersion(int* version) {
  *version = fake.version;
  return success;
}
int hipSetDevice(int device) {
  if (const int error = begin("hipSetDevice", false)) return error;
  current_device = device;
  return success;
}
const char* hipGetErrorName(int error) {
  return error == 700 ? "hipErrorIllegalAddress" : error == 2 ? "hipErrorOutOfMemory" : "hipErrorX";
}
const char* hipGetErrorString(int error) {
  return error == 700 ? "an illegal memory access was encountered" : hipGetErrorName(error);
}
/// The form of HIP 5.
int hipGetDeviceProperties(char* to, int) {
  if (const int error = begin("hipGetDeviceProperties", false)) return error;
  std::memset(to, 0x5a, 792);
  std::strcpy(to + 396, fake.architecture.c_str());
  return success;
}
#if FAKE_HIP == 6
int hipGetDevicePropertiesR0600(char* to, int) {
  if (const int error = begin("hipGetDeviceProperties", false)) return error;
  std::memset(to, 0x5a, 1472);
  std::strcpy(to + 1160, fake.architecture.c_str());
  return success;
}
#endif
#endif

}  // extern "C"
