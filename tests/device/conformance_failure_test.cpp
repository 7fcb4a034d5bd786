// Protects: deadlines, lost devices and validation messages become failures, and the device can be
// reopened.

#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::conformance_failure_test {

namespace {

using ConformanceFailure = Conformance;
INSTANTIATE_TEST_SUITE_P(All, ConformanceFailure, ::testing::ValuesIn(usable_devices()),
                         parameter_name);

/// A machine may have no device that validates.
using ConformanceValidation = Conformance;
INSTANTIATE_TEST_SUITE_P(All, ConformanceValidation, ::testing::ValuesIn(validated_devices()),
                         parameter_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceValidation);

using Clock = std::chrono::steady_clock;

/// Keeps the device busy for some seconds unless interrupted.
struct Runaway {
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Buffer> buffer;
  std::unique_ptr<Stream> stream;

  explicit Runaway(Device& device) : kernel(device.compile(affine_source(device.info())).value()) {
    // Lavapipe ends a loop after 65,535 iterations. So there the work is many elements, on a GPU
    // many iterations.
    const bool cpu = device.info().is_cpu();
    const std::uint32_t elements = cpu ? 1U << 15 : 1U << 12;
    const std::uint32_t rounds = cpu ? 60'000 : 200'000'000;
    buffer = upload_floats(device, std::vector<float>(elements, 1));
    stream = device.create_stream().value();
    const AffineArguments arguments{buffer->address(), elements, rounds, 0.5F, 1};
    stream->launch(*kernel, affine_grid(elements), bytes_of(arguments)).value();
  }
};

TEST_P(ConformanceFailure, SubmitReturnsAtOnce) {
  const auto event = device_->create_event().value();
  Runaway work(*device_);
  work.stream->record(*event).value();
  work.stream->submit().value();
  const auto early = device_->elapsed_us(*event, *event);
  ASSERT_FALSE(early) << "submit() waited for the work";
  EXPECT_EQ(early.failure().status, Status::invalid_argument);
  work.stream->synchronize(patience).value();
  EXPECT_TRUE(device_->elapsed_us(*event, *event));
}

TEST_P(ConformanceFailure, ADeadlineThatPassesIsAFailureAndTheDeviceOpensAgain) {
  const auto whole = [&] {
    Runaway work(*device_);
    const auto start = Clock::now();
    work.stream->synchronize(patience).value();
    return Clock::now() - start;
  }();
  Clock::time_point start;
  {
    Runaway work(*device_);
    start = Clock::now();
    const auto late = work.stream->synchronize(std::chrono::milliseconds(50));
    const auto waited = Clock::now() - start;
    ASSERT_FALSE(late);
    EXPECT_EQ(late.failure().status, Status::timeout);
    EXPECT_NE(late.failure().message.find("50 ms"), std::string::npos) << late.failure().message;
    EXPECT_GE(waited, std::chrono::milliseconds(50));

    // Every later call fails immediately.
    const auto lost = Status::device_lost;
    std::vector<std::byte> data(16);
    const AffineArguments arguments{};
    EXPECT_EQ(work.stream->synchronize(patience).failure().status, lost);
    EXPECT_EQ(work.stream->submit().failure().status, lost);
    EXPECT_EQ(work.stream->launch(*work.kernel, {1, 1, 1}, bytes_of(arguments)).failure().status,
              lost);
    EXPECT_EQ(device_->allocate(16).failure().status, lost);
    EXPECT_EQ(device_->upload(*work.buffer, 0, data).failure().status, lost);
    EXPECT_EQ(device_->download(*work.buffer, 0, data).failure().status, lost);
    EXPECT_EQ(device_->compile(affine_source(device_->info())).failure().status, lost);
    EXPECT_EQ(device_->create_stream().failure().status, lost);
    EXPECT_EQ(device_->create_event().failure().status, lost);
    device_->trim();
    work.stream->discard();
  }
  device_.reset();
  EXPECT_LT(Clock::now() - start, whole / 2) << "a call or a destructor waited for the work";

  device_ = open();
  const auto kernel = device_->compile(affine_source(device_->info())).value();
  const auto buffer = upload_floats(*device_, std::vector<float>(1000, 2));
  const auto stream = device_->create_stream().value();
  const AffineArguments arguments{buffer->address(), 1000, 1, 3, 1};
  stream->launch(*kernel, affine_grid(1000), bytes_of(arguments)).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *buffer), std::vector<float>(1000, 7));
}

TEST_P(ConformanceFailure, ADeadlineOfZeroIsNoWait) {
  const auto stream = device_->create_stream().value();
  EXPECT_TRUE(stream->synchronize(Deadline::zero())) << "nothing to wait for";
  Runaway work(*device_);
  EXPECT_EQ(work.stream->synchronize(Deadline::zero()).failure().status, Status::timeout);
}

TEST_P(ConformanceFailure, OneLostDeviceDoesNotHarmAnother) {
  const auto other = open();
  const auto buffer = upload_floats(*other, std::vector<float>(100, 2));
  const auto kernel = other->compile(affine_source(other->info())).value();
  Runaway work(*device_);
  EXPECT_EQ(work.stream->synchronize(std::chrono::milliseconds(1)).failure().status,
            Status::timeout);
  const auto stream = other->create_stream().value();
  const AffineArguments arguments{buffer->address(), 100, 1, 2, 1};
  stream->launch(*kernel, affine_grid(100), bytes_of(arguments)).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*other, *buffer), std::vector<float>(100, 5));
}

/// Messages of the validation layer arrive: this kernel uses a feature that was not enabled.
TEST_P(ConformanceValidation, IsHeard) {
  KernelSource source = affine_source();
  source.text = glsl(R"(
#extension GL_EXT_shader_atomic_int64 : require
layout(local_size_x = 64) in;
layout(buffer_reference, scalar) buffer Counter { uint64_t count; };
layout(push_constant, scalar) uniform Arguments { Counter to; };
void main() { atomicAdd(to.count, 1UL); }
)");
  const auto kernel = device_->compile(source);
  const auto messages = take_messages();
  ASSERT_FALSE(messages.empty());
  EXPECT_NE(messages[0].find("Int64Atomics"), std::string::npos) << messages[0];
}

}  // namespace

}  // namespace greta::test::conformance_failure_test
