// Protects: streams run launches in order, events measure time and order streams, and invalid
// launches are rejected.

#include <cstring>

#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::conformance_stream_test {

namespace {

using ConformanceStream = Conformance;
INSTANTIATE_TEST_SUITE_P(All, ConformanceStream, ::testing::ValuesIn(usable_devices()),
                         parameter_name);

TEST_P(ConformanceStream, LaunchesAKernel) {
  const auto kernel = device_->compile(affine_source(device_->info())).value();
  std::vector<float> values(1001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto buffer = upload_floats(*device_, values);
  const auto stream = device_->create_stream().value();
  // The last elements are left out, so the kernel must handle a partial workgroup.
  const AffineArguments arguments{buffer->address(), 1000, 1, 2, 3};
  stream->launch(*kernel, affine_grid(1000), bytes_of(arguments)).value();
  stream->synchronize(patience).value();
  const auto result = download_floats(*device_, *buffer);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(result[i], values[i] * 2 + 3) << i;
  EXPECT_EQ(result[1000], 1000);
}

TEST_P(ConformanceStream, RunsInOrder) {
  const auto kernel = device_->compile(affine_source(device_->info())).value();
  const auto buffer = upload_floats(*device_, std::vector<float>(64, 0));
  const auto copy = device_->allocate(256).value();
  const auto stream = device_->create_stream().value();
  // Adding 1 and doubling do not commute. The copies between them must read each step's result.
  float expected = 0;
  for (int step = 0; step < 20; ++step) {
    const AffineArguments add{buffer->address(), 64, 1, 1, 1};
    const AffineArguments twice{copy->address(), 64, 1, 2, 0};
    stream->launch(*kernel, affine_grid(64), bytes_of(add)).value();
    stream->copy(*copy, 0, *buffer, 0, 256).value();
    stream->launch(*kernel, affine_grid(64), bytes_of(twice)).value();
    stream->copy(*buffer, 0, *copy, 0, 256).value();
    if (step % 3 == 0) stream->submit().value();
    expected = (expected + 1) * 2;
  }
  stream->fill(*copy, 0, 4, 0).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *buffer), std::vector<float>(64, expected));
  EXPECT_EQ(download_floats(*device_, *copy)[0], 0);
}

TEST_P(ConformanceStream, EventsAreInOrderAndTimestampsIncrease) {
  const auto kernel = device_->compile(affine_source(device_->info())).value();
  const auto buffer = upload_floats(*device_, std::vector<float>(4096, 1));
  const auto stream = device_->create_stream().value();
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 5; ++i) events.push_back(device_->create_event().value());
  const auto launch = [&](std::uint32_t rounds) {
    const AffineArguments arguments{buffer->address(), 4096, rounds, 0.5F, 1};
    stream->launch(*kernel, affine_grid(4096), bytes_of(arguments)).value();
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i > 0) launch(i == 4 ? 20000 : 1000);
    stream->record(*events[i]).value();
    if (i == 2) stream->submit().value();
  }
  stream->synchronize(patience).value();
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_GT(device_->elapsed_us(*events[i - 1], *events[i]).value(), 0) << i;
  }
  const double all = device_->elapsed_us(*events[0], *events[4]).value();
  const double parts = device_->elapsed_us(*events[0], *events[3]).value() +
                       device_->elapsed_us(*events[3], *events[4]).value();
  EXPECT_NEAR(all, parts, 1e-6 * all);
}

TEST_P(ConformanceStream, AnEventIsRecordedAgain) {
  const auto stream = device_->create_stream().value();
  const auto start = device_->create_event().value();
  const auto stop = device_->create_event().value();
  for (int round = 0; round < 3; ++round) {
    stream->record(*start).value();
    stream->record(*stop).value();
    EXPECT_EQ(stream->record(*start).failure().status, Status::invalid_argument)
        << "its first recording has not completed";
    stream->synchronize(patience).value();
    EXPECT_GE(device_->elapsed_us(*start, *stop).value(), 0);
  }
}

TEST_P(ConformanceStream, AnEventThatWasNotReachedHasNoTime) {
  const auto stream = device_->create_stream().value();
  const auto other = device_->create_stream().value();
  const auto start = device_->create_event().value();
  const auto stop = device_->create_event().value();
  EXPECT_EQ(device_->elapsed_us(*start, *stop).failure().status, Status::invalid_argument);
  stream->record(*start).value();
  EXPECT_EQ(device_->elapsed_us(*start, *start).failure().status, Status::invalid_argument);
  EXPECT_EQ(other->wait(*start).failure().status, Status::invalid_argument);
  stream->synchronize(patience).value();
  EXPECT_TRUE(device_->elapsed_us(*start, *start));
}

TEST_P(ConformanceStream, AStreamWaitsForAnother) {
  const auto kernel = device_->compile(affine_source(device_->info())).value();
  const auto buffer = upload_floats(*device_, std::vector<float>(4096, 0));
  const auto first = device_->create_stream().value();
  const auto second = device_->create_stream().value();
  const auto done = device_->create_event().value();
  for (float round = 0; round < 5; ++round) {
    const AffineArguments slow{buffer->address(), 4096, 5000, 0, round};
    first->launch(*kernel, affine_grid(4096), bytes_of(slow)).value();
    first->record(*done).value();
    first->submit().value();
    second->wait(*done).value();
    const AffineArguments quick{buffer->address(), 4096, 1, 1, 100};
    second->launch(*kernel, affine_grid(4096), bytes_of(quick)).value();
    second->synchronize(patience).value();
    EXPECT_EQ(download_floats(*device_, *buffer), std::vector<float>(4096, round + 100));
  }
}

TEST_P(ConformanceStream, RefusesBadLaunches) {
  const auto kernel = device_->compile(affine_source(device_->info())).value();
  const auto buffer = upload_floats(*device_, std::vector<float>(64, 0));
  const auto stream = device_->create_stream().value();
  const AffineArguments arguments{buffer->address(), 64, 1, 1, 1};
  const auto bytes = bytes_of(arguments);
  const auto status = [&](Grid grid, std::span<const std::byte> block) {
    return stream->launch(*kernel, grid, block).failure().status;
  };
  EXPECT_EQ(status({1, 1, 1}, bytes.first(bytes.size() - 1)), Status::invalid_argument);
  EXPECT_EQ(status({1, 1, 1}, {}), Status::invalid_argument);
  EXPECT_EQ(status({0, 1, 1}, bytes), Status::invalid_argument);
  EXPECT_EQ(status({1, 1, 0}, bytes), Status::invalid_argument);
  EXPECT_EQ(status({1, device_->info().max_grid[1] + 1, 1}, bytes), Status::launch);
  const auto other = open();
  const auto foreign = other->create_stream().value();
  EXPECT_EQ(foreign->launch(*kernel, {1, 1, 1}, bytes).failure().status, Status::invalid_argument);
  // None of these calls has changed the stream.
  stream->launch(*kernel, {1, 1, 1}, bytes).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *buffer)[63], 1);
}

TEST_P(ConformanceStream, ArgumentsNeedNotFillWords) {
  KernelSource source = source_of(device_->info(), {R"(
layout(local_size_x = 1) in;
layout(push_constant, scalar) uniform Arguments { Numbers to; uint8_t a; uint8_t b; };
void main() { to.at[0] = uint(a) * 256 + uint(b); }
)",
                                                    R"(
GRETA_KERNEL(1) work(u32* to, u8 a, u8 b) { to[0] = a * 256 + b; }
)"});
  source.argument_bytes = 10;
  const auto kernel = device_->compile(source).value();
  const auto buffer = upload_floats(*device_, {0});
  std::array<std::byte, 10> arguments{};
  const std::uint64_t address = buffer->address();
  std::copy_n(bytes_of(address).begin(), 8, arguments.begin());
  arguments[8] = std::byte{3};
  arguments[9] = std::byte{4};
  const auto stream = device_->create_stream().value();
  stream->launch(*kernel, {1, 1, 1}, arguments).value();
  stream->synchronize(patience).value();
  std::uint32_t result = 0;
  device_->download(*buffer, 0, std::as_writable_bytes(std::span(&result, 1))).value();
  EXPECT_EQ(result, 3U * 256 + 4);
}

TEST_P(ConformanceStream, ArgumentsMayFillTheWholeBlock) {
  const std::uint32_t bytes = device_->info().max_argument_bytes;
  ASSERT_GE(bytes, 128U);
  ASSERT_LE(bytes, 4096U);
  KernelSource source = source_of(device_->info(), {R"(
layout(local_size_x = 1) in;
layout(push_constant, scalar) uniform Arguments { Numbers to; uint values[COUNT]; };
void main() { to.at[0] = values[0]; to.at[1] = values[COUNT - 1]; }
)",
                                                    R"(
struct Values { u32 at[COUNT]; };
GRETA_KERNEL(1) work(u32* to, Values values) {
  to[0] = values.at[0];
  to[1] = values.at[COUNT - 1];
}
)"});
  source.argument_bytes = bytes;
  const std::uint32_t count = (bytes - 8) / 4;
  source.options = {"-DCOUNT=" + std::to_string(count)};
  const auto kernel = device_->compile(source).value();
  const auto buffer = upload_floats(*device_, {0, 0});
  std::vector<std::uint32_t> arguments(bytes / 4);
  const std::uint64_t address = buffer->address();
  std::memcpy(arguments.data(), &address, sizeof address);
  arguments[2] = 11;
  arguments.back() = 22;
  const auto stream = device_->create_stream().value();
  stream->launch(*kernel, {1, 1, 1}, std::as_bytes(std::span(arguments))).value();
  stream->synchronize(patience).value();
  std::array<std::uint32_t, 2> result{};
  device_->download(*buffer, 0, std::as_writable_bytes(std::span(result))).value();
  EXPECT_EQ(result, (std::array<std::uint32_t, 2>{11, 22}));
}

TEST_P(ConformanceStream, DiscardForgetsWhatWasNotSubmitted) {
  auto kernel = device_->compile(affine_source(device_->info())).value();
  const auto buffer = upload_floats(*device_, std::vector<float>(64, 0));
  const auto stream = device_->create_stream().value();
  const auto before = device_->create_event().value();
  const auto event = device_->create_event().value();
  auto gone = device_->create_event().value();
  stream->discard();  // discards nothing
  const AffineArguments add{buffer->address(), 64, 1, 1, 1};
  for (float round = 1; round < 4; ++round) {
    stream->launch(*kernel, {1, 1, 1}, bytes_of(add)).value();
    stream->record(*before).value();
    stream->submit().value();
    stream->launch(*kernel, {1, 1, 1}, bytes_of(add)).value();
    stream->fill(*buffer, 0, 128, 0x7fc00000).value();
    stream->record(*event).value();
    if (gone) stream->record(*gone).value();
    gone.reset();
    stream->discard();
    stream->synchronize(patience).value();
    EXPECT_EQ(download_floats(*device_, *buffer), std::vector<float>(64, round));
    EXPECT_TRUE(device_->elapsed_us(*before, *before)) << "it was submitted";
    EXPECT_EQ(device_->elapsed_us(*event, *event).failure().status, Status::invalid_argument);
  }
  // Work that was only recorded does not prevent the use or destruction of its event or kernel.
  const auto other = device_->create_stream().value();
  EXPECT_EQ(other->wait(*event).failure().status, Status::invalid_argument);
  stream->launch(*kernel, {1, 1, 1}, bytes_of(add)).value();
  stream->record(*event).value();
  kernel.reset();
  stream->discard();
  other->record(*event).value();
  other->synchronize(patience).value();
  EXPECT_TRUE(device_->elapsed_us(*event, *event));
}

TEST_P(ConformanceStream, ADestroyedStreamLeavesItsEventsUsable) {
  const auto submitted = device_->create_event().value();
  const auto recorded = device_->create_event().value();
  auto first = device_->create_stream().value();
  first->record(*submitted).value();
  first->submit().value();
  first->record(*recorded).value();
  first.reset();
  EXPECT_TRUE(device_->elapsed_us(*submitted, *submitted));
  EXPECT_EQ(device_->elapsed_us(*recorded, *recorded).failure().status, Status::invalid_argument);
  const auto second = device_->create_stream().value();
  second->record(*submitted).value();
  second->record(*recorded).value();
  second->synchronize(patience).value();
  EXPECT_GE(device_->elapsed_us(*submitted, *recorded).value(), 0);
}

TEST_P(ConformanceStream, ObjectsMayOutliveTheirDevice) {
  auto kernel = device_->compile(affine_source(device_->info())).value();
  auto buffer = upload_floats(*device_, std::vector<float>(64, 0));
  auto stream = device_->create_stream().value();
  auto event = device_->create_event().value();
  const AffineArguments arguments{buffer->address(), 64, 100, 1, 1};
  stream->launch(*kernel, {1, 1, 1}, bytes_of(arguments)).value();
  stream->record(*event).value();
  stream->submit().value();
  device_.reset();
  kernel.reset();  // while it runs
  event.reset();
  stream.reset();  // waits
  buffer.reset();
}

}  // namespace

}  // namespace greta::test::conformance_stream_test
