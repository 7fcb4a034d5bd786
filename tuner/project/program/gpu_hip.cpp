// AMD GPUs through HIP's module API.
#include <hip/hip_runtime_api.h>

#include <stdexcept>

#include "gpu.hpp"

namespace {

void check(hipError_t error, const char* call) {
  if (error == hipSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + hipGetErrorString(error));
}
#define CHECK(call) check(call, #call)

struct Kernel {
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  std::array<std::uint32_t, 3> block{};
  std::uint32_t shared_bytes = 0;
};

class HipGpu final : public Gpu {
 public:
  explicit HipGpu(int index) {
    CHECK(hipInit(0));
    CHECK(hipSetDevice(index));
    char name[256] = "";
    CHECK(hipDeviceGetName(name, sizeof name, index));
    name_ = name;
    CHECK(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&start_, hipEventDefault));
    CHECK(hipEventCreateWithFlags(&stop_, hipEventDefault));
  }
  ~HipGpu() override {
    for (const Kernel& kernel : kernels_) static_cast<void>(hipModuleUnload(kernel.module));
    for (void* memory : memory_) static_cast<void>(hipFree(memory));
    static_cast<void>(hipEventDestroy(start_));
    static_cast<void>(hipEventDestroy(stop_));
    static_cast<void>(hipStreamDestroy(stream_));
  }

  std::string name() const override { return name_; }

  std::uint64_t allocate(std::size_t bytes) override {
    void* memory = nullptr;
    CHECK(hipMalloc(&memory, bytes));
    memory_.push_back(memory);
    return reinterpret_cast<std::uint64_t>(memory);
  }

  void upload(std::uint64_t to, const std::vector<std::byte>& from) override {
    CHECK(hipMemcpyAsync(reinterpret_cast<void*>(to), from.data(), from.size(),
                         hipMemcpyHostToDevice, stream_));
    CHECK(hipStreamSynchronize(stream_));
  }

  void download(std::vector<std::byte>& to, std::uint64_t from) override {
    CHECK(hipMemcpyAsync(to.data(), reinterpret_cast<const void*>(from), to.size(),
                         hipMemcpyDeviceToHost, stream_));
    CHECK(hipStreamSynchronize(stream_));
  }

  std::size_t load(const std::vector<std::byte>& binary, const std::string& entry,
                   std::array<std::uint32_t, 3> block, std::uint32_t shared_bytes, std::uint32_t,
                   std::size_t) override {
    Kernel kernel{nullptr, nullptr, block, shared_bytes};
    CHECK(hipModuleLoadData(&kernel.module, binary.data()));
    kernels_.push_back(kernel);
    CHECK(hipModuleGetFunction(&kernels_.back().function, kernel.module, entry.c_str()));
    return kernels_.size() - 1;
  }

  double run(const std::vector<ReadyLaunch>& launches, std::size_t flush_bytes) override {
    if (flush_bytes != 0) {
      if (flushed_ == 0) flushed_ = allocate(flush_bytes);
      CHECK(hipMemsetD32Async(reinterpret_cast<void*>(flushed_), 1, flush_bytes / 4, stream_));
    }
    CHECK(hipEventRecord(start_, stream_));
    for (const ReadyLaunch& launch : launches) start(launch);
    CHECK(hipEventRecord(stop_, stream_));
    CHECK(hipStreamSynchronize(stream_));
    float milliseconds = 0;
    CHECK(hipEventElapsedTime(&milliseconds, start_, stop_));
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  void start(const ReadyLaunch& launch) {
    const Kernel& kernel = kernels_[launch.kernel];
    std::vector<std::byte> arguments = launch.arguments;
    std::size_t bytes = arguments.size();
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments.data(),
                     HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
    CHECK(hipModuleLaunchKernel(kernel.function, launch.grid[0], launch.grid[1], launch.grid[2],
                                kernel.block[0], kernel.block[1], kernel.block[2],
                                kernel.shared_bytes, stream_, nullptr, extra));
  }

  std::string name_;
  hipStream_t stream_ = nullptr;
  hipEvent_t start_ = nullptr, stop_ = nullptr;
  std::vector<void*> memory_;
  std::vector<Kernel> kernels_;
  std::uint64_t flushed_ = 0;
};

}  // namespace

std::unique_ptr<Gpu> open_gpu(int index) {
  return std::make_unique<HipGpu>(index);
}
