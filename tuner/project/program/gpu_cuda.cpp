// NVIDIA GPUs through the CUDA driver API.
#include <cuda.h>

#include <stdexcept>

#include "gpu.hpp"

namespace {

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuGetErrorString(result, &text);
  throw std::runtime_error(std::string(call) + ": " + (text != nullptr ? text : "unknown error"));
}
#define CHECK(call) check(call, #call)

struct Kernel {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::array<std::uint32_t, 3> block{};
  std::uint32_t shared_bytes = 0;
};

class CudaGpu final : public Gpu {
 public:
  explicit CudaGpu(int index) {
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device_, index));
    char name[256] = "";
    CHECK(cuDeviceGetName(name, sizeof name, device_));
    name_ = name;
    CUcontext context = nullptr;
    CHECK(cuDevicePrimaryCtxRetain(&context, device_));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&start_, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&stop_, CU_EVENT_DEFAULT));
  }
  ~CudaGpu() override {
    for (const Kernel& kernel : kernels_) cuModuleUnload(kernel.module);
    for (CUdeviceptr memory : memory_) cuMemFree(memory);
    cuEventDestroy(start_);
    cuEventDestroy(stop_);
    cuStreamDestroy(stream_);
    cuDevicePrimaryCtxRelease(device_);
  }

  std::string name() const override { return name_; }

  std::uint64_t allocate(std::size_t bytes) override {
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, bytes));
    memory_.push_back(memory);
    return memory;
  }

  void upload(std::uint64_t to, const std::vector<std::byte>& from) override {
    CHECK(cuMemcpyHtoDAsync(to, from.data(), from.size(), stream_));
    CHECK(cuStreamSynchronize(stream_));
  }

  void download(std::vector<std::byte>& to, std::uint64_t from) override {
    CHECK(cuMemcpyDtoHAsync(to.data(), from, to.size(), stream_));
    CHECK(cuStreamSynchronize(stream_));
  }

  std::size_t load(const std::vector<std::byte>& binary, const std::string& entry,
                   std::array<std::uint32_t, 3> block, std::uint32_t shared_bytes, std::uint32_t,
                   std::size_t) override {
    Kernel kernel{nullptr, nullptr, block, shared_bytes};
    CHECK(cuModuleLoadData(&kernel.module, binary.data()));
    kernels_.push_back(kernel);
    CUfunction& function = kernels_.back().function;
    CHECK(cuModuleGetFunction(&function, kernel.module, entry.c_str()));
    // A kernel needs permission for more than 48 KiB, and for clusters of more than eight blocks,
    // which GPUs without clusters refuse.
    cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             static_cast<int>(shared_bytes)));
    return kernels_.size() - 1;
  }

  double run(const std::vector<ReadyLaunch>& launches, std::size_t flush_bytes) override {
    if (flush_bytes != 0) {
      if (flushed_ == 0) flushed_ = allocate(flush_bytes);
      CHECK(cuMemsetD32Async(flushed_, 1, flush_bytes / 4, stream_));
    }
    CHECK(cuEventRecord(start_, stream_));
    for (const ReadyLaunch& launch : launches) start(launch);
    CHECK(cuEventRecord(stop_, stream_));
    CHECK(cuStreamSynchronize(stream_));
    float milliseconds = 0;
    CHECK(cuEventElapsedTime(&milliseconds, start_, stop_));
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  void start(const ReadyLaunch& launch) {
    const Kernel& kernel = kernels_[launch.kernel];
    std::vector<std::byte> arguments = launch.arguments;
    std::size_t bytes = arguments.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(kernel.function, launch.grid[0], launch.grid[1], launch.grid[2],
                         kernel.block[0], kernel.block[1], kernel.block[2], kernel.shared_bytes,
                         stream_, nullptr, extra));
  }

  std::string name_;
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
  std::vector<CUdeviceptr> memory_;
  std::vector<Kernel> kernels_;
  std::uint64_t flushed_ = 0;
};

}  // namespace

std::unique_ptr<Gpu> open_gpu(int index) {
  return std::make_unique<CudaGpu>(index);
}
