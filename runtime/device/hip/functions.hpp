#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/device/layers.hpp"
#include "runtime/device/tensor_map.hpp"

namespace greta::device::hip {

// The part of HIP's binary interface that GRETA uses. No vendor's header is needed to build:
// objects are opaque pointers and enumerations are their numbers, which HIP and the CUDA driver API
// share.
using hipError_t = int;
using hipDeviceptr_t = void*;
using hipStream_t = struct hipStream*;
using hipEvent_t = struct hipEvent*;
using hipModule_t = struct hipModule*;
using hipFunction_t = struct hipFunction*;
using hipGraph_t = struct hipGraph*;
using hipGraphExec_t = struct hipGraphExec*;

constexpr hipError_t hipSuccess = 0;
constexpr hipError_t hipErrorInvalidValue = 1;
constexpr hipError_t hipErrorOutOfMemory = 2;
constexpr hipError_t hipErrorNotInitialized = 3;
constexpr hipError_t hipErrorNoDevice = 100;
constexpr hipError_t hipErrorInvalidDevice = 101;
constexpr hipError_t hipErrorInvalidImage = 200;
constexpr hipError_t hipErrorNoBinaryForGpu = 209;
constexpr hipError_t hipErrorInvalidKernelFile = 218;
constexpr hipError_t hipErrorInvalidHandle = 400;
constexpr hipError_t hipErrorNotFound = 500;
constexpr hipError_t hipErrorNotReady = 600;
constexpr hipError_t hipErrorIllegalAddress = 700;
constexpr hipError_t hipErrorLaunchOutOfResources = 701;
constexpr hipError_t hipErrorLaunchFailure = 719;
constexpr hipError_t hipErrorNotSupported = 801;
constexpr hipError_t hipErrorUnknown = 999;

constexpr unsigned hipHostMallocMapped = 2;
constexpr unsigned hipStreamNonBlocking = 1;
constexpr unsigned hipEventDefault = 0;
constexpr int hipStreamCaptureModeRelaxed = 2;

constexpr int HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0;
constexpr int HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1;  ///< static
constexpr int HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3;   ///< private memory per thread
constexpr int HIP_FUNC_ATTRIBUTE_NUM_REGS = 4;           ///< per thread
constexpr int HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
constexpr int CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14;

// Values of hipModuleLaunchKernel's `extra`, which pass the argument block as one buffer.
inline void* const HIP_LAUNCH_PARAM_BUFFER_POINTER = reinterpret_cast<void*>(1);
inline void* const HIP_LAUNCH_PARAM_BUFFER_SIZE = reinterpret_cast<void*>(2);
inline void* const HIP_LAUNCH_PARAM_END = reinterpret_cast<void*>(3);

/// The functions of a platform, named after HIP's. The comment after each one names the function of
/// the CUDA driver API that accepts the same arguments and takes its place on NVIDIA. Functions use
/// the calling thread's current device. Memory is aligned to 256 bytes. The functions in the second
/// part differ between platforms.
struct Functions {
  hipError_t (*hipMalloc)(void** pointer, std::size_t bytes) = nullptr;  // cuMemAlloc_v2
  hipError_t (*hipFree)(void* pointer) = nullptr;                        // cuMemFree_v2
  hipError_t (*hipHostMalloc)(void** pointer, std::size_t bytes,
                              unsigned flags) = nullptr;  // cuMemHostAlloc
  hipError_t (*hipHostFree)(void* pointer) = nullptr;     // cuMemFreeHost
  /// Sets `count` 32-bit words.
  hipError_t (*hipMemsetD32Async)(hipDeviceptr_t to, int value, std::size_t count,
                                  hipStream_t stream) = nullptr;  // cuMemsetD32Async

  hipError_t (*hipStreamCreateWithFlags)(hipStream_t* stream, unsigned flags) = nullptr;
  // cuStreamCreate
  hipError_t (*hipStreamDestroy)(hipStream_t stream) = nullptr;  // cuStreamDestroy_v2
  hipError_t (*hipStreamQuery)(hipStream_t stream) = nullptr;    // cuStreamQuery
  hipError_t (*hipStreamWaitEvent)(hipStream_t stream, hipEvent_t event,
                                   unsigned flags) = nullptr;                   // cuStreamWaitEvent
  hipError_t (*hipStreamBeginCapture)(hipStream_t stream, int mode) = nullptr;  // …BeginCapture_v2
  hipError_t (*hipStreamEndCapture)(hipStream_t stream, hipGraph_t* graph) = nullptr;
  // cuStreamEndCapture

  hipError_t (*hipGraphInstantiateWithFlags)(hipGraphExec_t* executable, hipGraph_t graph,
                                             unsigned long long flags) = nullptr;
  // cuGraphInstantiateWithFlags
  hipError_t (*hipGraphLaunch)(hipGraphExec_t executable,
                               hipStream_t stream) = nullptr;              // cuGraphLaunch
  hipError_t (*hipGraphExecDestroy)(hipGraphExec_t executable) = nullptr;  // cuGraphExecDestroy
  hipError_t (*hipGraphDestroy)(hipGraph_t graph) = nullptr;               // cuGraphDestroy

  hipError_t (*hipEventCreateWithFlags)(hipEvent_t* event, unsigned flags) = nullptr;
  // cuEventCreate
  hipError_t (*hipEventDestroy)(hipEvent_t event) = nullptr;  // cuEventDestroy_v2
  hipError_t (*hipEventRecord)(hipEvent_t event, hipStream_t stream) = nullptr;  // cuEventRecord
  hipError_t (*hipEventQuery)(hipEvent_t event) = nullptr;                       // cuEventQuery
  hipError_t (*hipEventElapsedTime)(float* milliseconds, hipEvent_t start,
                                    hipEvent_t stop) = nullptr;  // cuEventElapsedTime

  hipError_t (*hipModuleLoadData)(hipModule_t* loaded, const void* image) = nullptr;
  // cuModuleLoadData
  hipError_t (*hipModuleUnload)(hipModule_t loaded) = nullptr;  // cuModuleUnload
  hipError_t (*hipModuleGetFunction)(hipFunction_t* function, hipModule_t loaded,
                                     const char* name) = nullptr;  // cuModuleGetFunction
  hipError_t (*hipModuleGetGlobal)(void** address, std::size_t* bytes, hipModule_t loaded,
                                   const char* name) = nullptr;  // cuModuleGetGlobal_v2
  hipError_t (*hipFuncGetAttribute)(int* value, int attribute,
                                    hipFunction_t function) = nullptr;  // cuFuncGetAttribute
  hipError_t (*hipModuleLaunchKernel)(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned dynamic_shared_bytes,
                                      hipStream_t stream, void** parameters,
                                      void** extra) = nullptr;  // cuLaunchKernel

  // The following differ between platforms.

  /// Makes a device the calling thread's current one. AMD: hipSetDevice. NVIDIA:
  /// cuDevicePrimaryCtxRetain, once, and cuCtxSetCurrent.
  std::function<hipError_t(int device)> set_device;
  /// Destroys everything that this process has on a device, and clears a sticky failure. AMD:
  /// hipDeviceReset. NVIDIA: cuDevicePrimaryCtxReset_v2.
  std::function<hipError_t(int device)> reset_device;
  /// Cancels a stream's current and pending work, for which nothing waits any more. Empty where
  /// started work can't be stopped.
  std::function<void(hipStream_t stream)> abandon;
  /// hipModuleLaunchKernel, for a kernel that may begin before the launch ahead of it in the stream
  /// ends. Empty where there is none. NVIDIA: cuLaunchKernelEx, with programmatic stream
  /// serialisation.
  std::function<hipError_t(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                           unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned dynamic_shared_bytes, hipStream_t stream, void** parameters,
                           void** extra)>
      launch_overlapping;
  /// Copies between any two places in memory from hipMalloc or hipHostMalloc. AMD: hipMemcpyAsync
  /// with hipMemcpyDefault. NVIDIA: cuMemcpyAsync.
  std::function<hipError_t(void* to, const void* from, std::size_t bytes, hipStream_t stream)>
      copy_async;
  /// Copies between devices, which are numbered within the platform; empty where the library lacks
  /// one of the three. AMD: hipDeviceCanAccessPeer, hipDeviceEnablePeerAccess (of the current
  /// device), hipMemcpyPeerAsync. NVIDIA: cuDeviceCanAccessPeer, cuCtxEnablePeerAccess,
  /// cuMemcpyPeerAsync.
  std::function<hipError_t(int* can, int device, int peer)> can_access_peer;
  std::function<hipError_t(int device, int peer)> enable_peer_access;
  std::function<hipError_t(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes, hipStream_t stream)>
      copy_peer_async;
  /// Allows a kernel more dynamic shared memory than the default limit, and clusters of more than
  /// eight workgroups where there are clusters. NVIDIA: cuFuncSetAttribute. Empty where no
  /// permission is needed.
  std::function<hipError_t(hipFunction_t function, int bytes)> allow_resources;
  /// Writes a tensor map in the form in which kernels take it, tensor_map_bytes bytes. NVIDIA:
  /// cuTensorMapEncodeTiled. Empty where kernels have none.
  std::function<hipError_t(const TensorMap& map, std::uint64_t address, std::byte* to)> encode;
  /// Whether kernels with tensor maps get their arguments one by one (KernelSource).
  bool arguments_one_by_one = false;
  std::function<std::string(hipError_t error)> error_name;    ///< "hipErrorIllegalAddress"
  std::function<std::string(hipError_t error)> error_string;  ///< "an illegal memory access …"
  /// The value that ends `extra`: HIP_LAUNCH_PARAM_END, or CU_LAUNCH_PARAM_END, which is 0.
  void* launch_param_end = nullptr;
};

/// Returns text such as "hipErrorIllegalAddress (an illegal memory access …)".
std::string describe_error(const Functions& hip, hipError_t error);

}  // namespace greta::device::hip
