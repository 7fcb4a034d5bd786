// Protects: kernels of a fake device that another process executes: shared memory, launches in
// order, the fake clock, and failing kernels. A small script replaces the emulator.

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/device/hip/fake_library.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::emulator_test {

namespace {

using namespace std::chrono_literals;

struct Arguments {
  std::uint64_t to = 0;
  float value = 0;
  std::int32_t count = 0;
};

/// Each test runs in a separate process, whose fake library connects to this test's emulator.
class HipEmulator : public ::testing::Test {
 protected:
  HipEmulator() {
    socket_ = folder_.path() / "socket";
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // also ends if the library kills the test
      execlp("python3", "python3", "-B", FAKE_EMULATOR, FAKE_STAND_IN, socket_.c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 3000 && !std::filesystem::exists(socket_); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    setenv("GRETA_FAKE_EMULATOR", socket_.c_str(), 1);
    fake_ = &open_fake(Fake::hip6);
    device_ = backend_of(Fake::hip6)->open(0, {}).value();
    kernel_ = device_->load(work_source(), code_object_of(Fake::hip6)).value();
    buffer_ = device_->allocate(400).value();
    stream_ = device_->create_stream().value();
  }
  ~HipEmulator() override {
    EXPECT_TRUE(fake_->misuse.empty()) << fake_->misuse.front();
    stream_.reset();
    buffer_.reset();
    kernel_.reset();
    device_.reset();
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  void launch(Stream& stream, float value, std::int32_t count, std::uint32_t groups = 1) {
    const Arguments arguments{buffer_->address(), value, count};
    stream.launch(*kernel_, {groups, 1, 1}, std::as_bytes(std::span(&arguments, 1))).value();
  }
  std::vector<float> contents() {
    std::vector<float> values(100);
    device_->download(*buffer_, 0, std::as_writable_bytes(std::span(values))).value();
    return values;
  }

  TemporaryFolder folder_;
  std::filesystem::path socket_;
  pid_t process_ = 0;
  FakeHip* fake_ = nullptr;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(HipEmulator, KernelsWriteWhatIsReadBack) {
  launch(*stream_, 3, 100);
  launch(*stream_, 4, 50);
  stream_->synchronize(30s).value();
  std::vector<float> expected(100, 3);
  std::fill_n(expected.begin(), 50, 4.0F);
  EXPECT_EQ(contents(), expected);
}

TEST_F(HipEmulator, GraphsExecuteThem) {
  const auto graph = device_
                         ->create_graph([&](Stream& stream) -> Result<void> {
                           launch(stream, 7, 10);
                           return stream.fill(*buffer_, 0, 4, 0);
                         })
                         .value();
  launch(*stream_, 1, 100);
  stream_->replay(*graph).value();
  stream_->synchronize(30s).value();
  auto expected = std::vector<float>(100, 1);
  std::fill_n(expected.begin(), 10, 7.0F);
  expected[0] = 0;
  EXPECT_EQ(contents(), expected);
}

TEST_F(HipEmulator, TheClockCountsInstructions) {
  const auto start = device_->create_event().value(), stop = device_->create_event().value();
  for (int i = 0; i < 2; ++i) {
    stream_->record(*start).value();
    launch(*stream_, 1, 1, 10);  // 10 x 64 x 1000 instructions of 1 ns, and 5 us
    stream_->record(*stop).value();
    stream_->synchronize(30s).value();
    EXPECT_NEAR(device_->elapsed_us(*start, *stop).value(), 645, 0.1);
  }
}

TEST_F(HipEmulator, AKernelThatDoesNotEndIsATimeout) {
  launch(*stream_, 1, -2);
  EXPECT_EQ(stream_->synchronize(50ms).failure().status, Status::timeout);
}

TEST_F(HipEmulator, WhatTheEmulatorCannotDoLosesTheDevice) {
  launch(*stream_, 1, -3);
  EXPECT_EQ(stream_->synchronize(30s).failure().status, Status::device_lost);
}

TEST_F(HipEmulator, AnIllegalAddressEndsTheProcess) {
  launch(*stream_, 1, -1);
  EXPECT_DEATH(static_cast<void>(stream_->synchronize(30s)),
               "byte [0-9]+ of an allocation of [0-9]+ bytes");
}

}  // namespace

}  // namespace greta::test::emulator_test
