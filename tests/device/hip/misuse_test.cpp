// Protects: the fake library detects calls that no device accepts. Otherwise tests that expect no
// misuse would be meaningless.

#include <cstring>

#include "runtime/device/hip/functions.hpp"
#include "tests/device/hip/fake_library.hpp"
#include "tests/layers.hpp"

namespace greta::test::misuse_test {

namespace {

class HipMisuse : public ::testing::Test {
 protected:
  HipMisuse() : fake_(open_fake(Fake::hip6)) {
    hip_ = hip::amd_platform({.amd = {path_of(Fake::hip6)}}).value().functions;
    hip_.set_device(0);
    hip_.hipMalloc(&memory_, 1024);
    hip_.hipStreamCreateWithFlags(&stream_, hip::hipStreamNonBlocking);
    hip_.hipEventCreateWithFlags(&event_, hip::hipEventDefault);
    hip_.hipModuleLoadData(&module_, code_object_of(Fake::hip6).data());
    hip_.hipModuleGetFunction(&function_, module_, "work");
    EXPECT_TRUE(fake_.misuse.empty());
  }

  int launch(std::uint64_t a, std::size_t bytes = 16, std::array<unsigned, 3> grid = {1, 1, 1},
             std::array<unsigned, 3> block = {64, 1, 1}, unsigned shared = 0) {
    std::array<std::byte, 512> arguments{};
    std::memcpy(arguments.data(), &a, sizeof a);
    std::array<void*, 5> extra{hip::HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments.data(),
                               hip::HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, hip_.launch_param_end};
    return hip_.hipModuleLaunchKernel(function_, grid[0], grid[1], grid[2], block[0], block[1],
                                      block[2], shared, stream_, nullptr, extra.data());
  }
  /// Expects that the last call was rejected for this reason.
  void expect_noticed(int error, const std::string& why) {
    EXPECT_NE(error, 0);
    ASSERT_EQ(fake_.misuse.size(), 1U) << why;
    EXPECT_NE(fake_.misuse[0].find(why), std::string::npos) << fake_.misuse[0];
    fake_.misuse.clear();
  }
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

  FakeHip& fake_;
  hip::Functions hip_;
  void* memory_ = nullptr;
  hip::hipStream_t stream_ = nullptr;
  hip::hipEvent_t event_ = nullptr;
  hip::hipModule_t module_ = nullptr;
  hip::hipFunction_t function_ = nullptr;
};

TEST_F(HipMisuse, MemoryBeyondAnAllocation) {
  EXPECT_EQ(hip_.hipMemsetD32Async(at(0), 1, 256, stream_), 0);
  expect_noticed(hip_.hipMemsetD32Async(at(4), 1, 256, stream_), "outside of any allocation");
  expect_noticed(hip_.copy_async(at(512), at(0), 513, stream_), "outside of any allocation");
  std::array<std::byte, 16> own{};
  expect_noticed(hip_.copy_async(own.data(), at(0), 16, stream_), "outside of any allocation");
  hip_.hipFree(memory_);
  expect_noticed(hip_.copy_async(at(0), at(512), 16, stream_), "outside of any allocation");
  expect_noticed(hip_.hipFree(memory_), "not an object");
}

TEST_F(HipMisuse, MemoryThatIsFreedBeforeItsWorkIsDoneWaits) {
  void* kept = nullptr;
  hip_.hipHostMalloc(&kept, 1024, hip::hipHostMallocMapped);
  hip_.hipMemsetD32Async(at(0), 0x01010101, 256, stream_);
  hip_.copy_async(kept, at(0), 1024, stream_);
  EXPECT_EQ(static_cast<std::byte*>(kept)[0], std::byte{0xff}) << "nothing is done at once";
  EXPECT_EQ(hip_.hipFree(memory_), 0);
  EXPECT_EQ(static_cast<std::byte*>(kept)[1023], std::byte{1});
  fake_.busy = true;
  hip_.hipMemsetD32Async(kept, 0, 256, stream_);
  expect_noticed(hip_.hipHostFree(kept), "never ends");
}

TEST_F(HipMisuse, TheHostInDeviceMemory) {
  EXPECT_DEATH(static_cast<volatile char*>(memory_)[0] = 1, "");
}

TEST_F(HipMisuse, LaunchesBeyondTheLimits) {
  EXPECT_EQ(launch(0), 0);
  expect_noticed(launch(0, 12), "too short");
  expect_noticed(launch(0, 400), "longer than");
  expect_noticed(launch(0, 16, {1, 1, 1}, {2048, 1, 1}), "device's limits");
  expect_noticed(launch(0, 16, {1, 1, 1}, {64, 32, 1}), "more threads");
  expect_noticed(launch(0, 16, {1, 70'000, 1}), "device's limits");
  expect_noticed(launch(0, 16, {0, 1, 1}), "empty");
  expect_noticed(launch(0, 16, {1 << 26, 1, 1}), "2^32 threads");
  expect_noticed(launch(0, 16, {1, 1, 1}, {64, 1, 1}, 70'000), "shared memory");
  const auto function = function_;
  hip_.hipModuleUnload(module_);
  function_ = function;
  expect_noticed(launch(0), "no function");
}

TEST_F(HipMisuse, PointersOfKernelsBeyondAnyAllocation) {
  KernelSource source = work_source();
  source.text = "extern \"C\" __attribute__((global)) void work(float* a, float b, int c) {}\n";
  const auto compiler = hip::create_amd_compiler({}).value();
  const auto code = compiler->compile(source, "gfx90a").value();
  hip_.hipModuleLoadData(&module_, code.binary.data());
  hip_.hipModuleGetFunction(&function_, module_, "work");
  const auto address = reinterpret_cast<std::uint64_t>(memory_);
  EXPECT_EQ(launch(0), 0) << "none";
  EXPECT_EQ(launch(address), 0);
  EXPECT_EQ(launch(address + 1020), 0);
  expect_noticed(launch(address + 1028), "a pointer outside");
  expect_noticed(launch(address - 4), "a pointer outside");
  hip_.hipFree(memory_);
  expect_noticed(launch(address), "a pointer outside");
}

TEST_F(HipMisuse, KernelsThatAreUnloadedBeforeTheyRun) {
  EXPECT_EQ(launch(0), 0);
  hip_.hipModuleUnload(module_);
  hip_.hipStreamQuery(stream_);
  expect_noticed(1, "unloaded before");
}

TEST_F(HipMisuse, EventsAndStreams) {
  float ms = 0;
  expect_noticed(hip_.hipEventElapsedTime(&ms, event_, event_), "never recorded");
  hip_.hipEventRecord(event_, stream_);
  EXPECT_EQ(hip_.hipEventElapsedTime(&ms, event_, event_), hip::hipErrorNotReady);
  expect_noticed(hip_.hipEventDestroy(event_), "is to record it");
  EXPECT_EQ(hip_.hipStreamQuery(stream_), 0);
  EXPECT_EQ(hip_.hipEventElapsedTime(&ms, event_, event_), 0);
  hip_.hipEventDestroy(event_);
  expect_noticed(hip_.hipEventQuery(event_), "not an object");
  hip_.hipStreamDestroy(stream_);
  expect_noticed(hip_.hipStreamQuery(stream_), "not an object");
}

TEST_F(HipMisuse, ObjectsOfAnotherDevice) {
  hip_.set_device(1);
  expect_noticed(hip_.hipEventRecord(event_, stream_), "not an object");
  expect_noticed(hip_.hipFree(memory_), "not an object");
  expect_noticed(hip_.set_device(2), "not there");
}

TEST_F(HipMisuse, Graphs) {
  hip::hipGraph_t graph = nullptr;
  expect_noticed(hip_.hipStreamEndCapture(stream_, &graph), "not captured");
  hip_.hipStreamBeginCapture(stream_, hip::hipStreamCaptureModeRelaxed);
  expect_noticed(hip_.hipEventRecord(event_, stream_), "into a graph");
  expect_noticed(hip_.hipStreamQuery(stream_), "captured");
  launch(0);
  hip_.hipStreamEndCapture(stream_, &graph);
  hip::hipGraphExec_t executable = nullptr;
  hip_.hipGraphInstantiateWithFlags(&executable, graph, 0);
  hip_.hipGraphDestroy(graph);
  expect_noticed(hip_.hipGraphDestroy(graph), "not an object");
  hip_.hipGraphLaunch(executable, stream_);
  EXPECT_TRUE(fake_.launches.empty());
  hip_.hipGraphExecDestroy(executable);
  expect_noticed(1, "while it runs");
}

}  // namespace

}  // namespace greta::test::misuse_test
