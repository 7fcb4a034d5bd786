// Protects: graphs run what was recorded, in order, any number of times and in any stream, and
// invalid recordings are rejected.

#include <cstring>

#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::conformance_graph_test {

namespace {

using ConformanceGraph = Conformance;
INSTANTIATE_TEST_SUITE_P(All, ConformanceGraph, ::testing::ValuesIn(usable_devices()),
                         parameter_name);

/// Two buffers of 64 floats and a kernel for them.
struct Work {
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Buffer> x, y;

  explicit Work(Device& device)
      : kernel(device.compile(affine_source(device.info())).value()),
        x(upload_floats(device, std::vector<float>(64, 0))),
        y(upload_floats(device, std::vector<float>(64, 0))) {}

  /// x = x * a + b, repeated `rounds` times.
  Result<void> affine(Stream& stream, float a, float b, std::uint32_t rounds = 1) const {
    const AffineArguments arguments{x->address(), 64, rounds, a, b};
    return stream.launch(*kernel, affine_grid(64), bytes_of(arguments));
  }
};

/// Replays the graph in `second`, after the work recorded in `first`.
void replay_behind(Stream& first, Event& done, Stream& second, const Graph& graph) {
  first.record(done).value();
  first.submit().value();
  second.wait(done).value();
  second.replay(graph).value();
  second.synchronize(patience).value();
}

TEST_P(ConformanceGraph, RunsWhatWasRecordedInItsOrder) {
  const Work work(*device_);
  // x = (x + 1) * 2, then y = x, then x[0] = 1. None of these commands commutes with the others.
  const auto graph = device_
                         ->create_graph([&](Stream& stream) -> Result<void> {
                           work.affine(stream, 1, 1).value();
                           work.affine(stream, 2, 0).value();
                           stream.copy(*work.y, 0, *work.x, 0, 256).value();
                           stream.fill(*work.x, 0, 4, 0x3f800000).value();
                           return {};
                         })
                         .value();
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, 0)) << "only recorded";
  const auto stream = device_->create_stream().value();
  stream->replay(*graph).value();
  stream->synchronize(patience).value();
  std::vector<float> x(64, 2);
  x[0] = 1;
  EXPECT_EQ(download_floats(*device_, *work.x), x);
  EXPECT_EQ(download_floats(*device_, *work.y), std::vector<float>(64, 2));
}

TEST_P(ConformanceGraph, IsReplayedManyTimesInTheStreamsOrder) {
  const Work work(*device_);
  const auto add =
      device_->create_graph([&](Stream& stream) { return work.affine(stream, 1, 1); }).value();
  const auto twice = device_
                         ->create_graph([&](Stream& stream) -> Result<void> {
                           work.affine(stream, 2, 0).value();
                           return stream.copy(*work.y, 0, *work.x, 0, 256);
                         })
                         .value();
  const auto stream = device_->create_stream().value();
  float expected = 0;
  for (int step = 0; step < 12; ++step) {
    stream->replay(*add).value();
    stream->replay(*add).value();  // twice in one submission
    stream->replay(*twice).value();
    stream->copy(*work.x, 0, *work.y, 0, 128).value();
    work.affine(*stream, 1, -1).value();
    if (step % 4 == 1) stream->submit().value();  // while earlier ones are in flight
    expected = (expected + 2) * 2 - 1;
  }
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, expected));
  EXPECT_EQ(download_floats(*device_, *work.y), std::vector<float>(64, expected + 1));
}

// A run without overlap, runs that are queued after it and on another stream, and again one without
// overlap. The host reads the result of each.
TEST_P(ConformanceGraph, IsReplayedAloneAndWhileItRuns) {
  const Work work(*device_);
  const auto host = device_->allocate(256, Memory::staging).value();
  const auto graph = device_
                         ->create_graph([&](Stream& stream) -> Result<void> {
                           work.affine(stream, 1, 1, 200).value();
                           return stream.copy(*host, 0, *work.x, 0, 256);
                         })
                         .value();
  const auto first = device_->create_stream().value();
  const auto second = device_->create_stream().value();
  const auto done = device_->create_event().value();
  float value = 0;
  const auto told = [&] {
    std::memcpy(&value, host->host() + 252, sizeof value);
    return value;
  };
  for (int round = 0; round < 3; ++round) {
    const auto before = static_cast<float>(round * 1200);
    first->replay(*graph).value();
    first->synchronize(patience).value();
    EXPECT_EQ(told(), before + 200);
    for (int i = 0; i < 3; ++i) {
      first->replay(*graph).value();
      first->submit().value();
    }
    first->replay(*graph).value();
    replay_behind(*first, *done, *second, *graph);
    EXPECT_EQ(told(), before + 1200);
    first->synchronize(patience).value();
  }
}

TEST_P(ConformanceGraph, RunsInAnyStream) {
  const Work work(*device_);
  const auto graph =
      device_->create_graph([&](Stream& stream) { return work.affine(stream, 1, 1, 1000); })
          .value();
  const auto first = device_->create_stream().value();
  const auto second = device_->create_stream().value();
  const auto done = device_->create_event().value();
  first->replay(*graph).value();
  replay_behind(*first, *done, *second, *graph);
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, 2000));
}

TEST_P(ConformanceGraph, EventsAroundAReplayMeasureIt) {
  const Work work(*device_);
  const auto graph =
      device_->create_graph([&](Stream& stream) { return work.affine(stream, 0.5F, 1, 20000); })
          .value();
  const auto stream = device_->create_stream().value();
  const auto start = device_->create_event().value(), stop = device_->create_event().value();
  stream->record(*start).value();
  stream->replay(*graph).value();
  stream->record(*stop).value();
  stream->synchronize(patience).value();
  EXPECT_GT(device_->elapsed_us(*start, *stop).value(), 0);
}

TEST_P(ConformanceGraph, DiscardForgetsAReplay) {
  const Work work(*device_);
  auto graph =
      device_->create_graph([&](Stream& stream) { return work.affine(stream, 1, 1); }).value();
  const auto stream = device_->create_stream().value();
  stream->replay(*graph).value();
  stream->discard();
  stream->replay(*graph).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, 1));
  graph.reset();
  work.affine(*stream, 1, 1).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, 2));
}

TEST_P(ConformanceGraph, MayBeEmpty) {
  const auto graph = device_->create_graph([](Stream&) { return Result<void>{}; }).value();
  const auto stream = device_->create_stream().value();
  stream->replay(*graph).value();
  EXPECT_TRUE(stream->synchronize(patience));
}

TEST_P(ConformanceGraph, RefusesAllButLaunchesCopiesAndFills) {
  const Work work(*device_);
  const auto empty = device_->create_graph([](Stream&) { return Result<void>{}; }).value();
  const auto event = device_->create_event().value();
  const auto recorded = device_->create_event().value();
  const auto other = device_->create_stream().value();
  other->record(*recorded).value();
  other->submit().value();
  // The rejected calls leave no trace: the rest of the work is in the graph.
  const auto graph =
      device_
          ->create_graph([&](Stream& stream) -> Result<void> {
            const auto bad = Status::invalid_argument;
            work.affine(stream, 1, 1).value();
            EXPECT_EQ(stream.record(*event).failure().status, bad);
            EXPECT_EQ(stream.wait(*recorded).failure().status, bad);
            EXPECT_EQ(stream.replay(*empty).failure().status, bad);
            EXPECT_EQ(stream.submit().failure().status, bad);
            EXPECT_EQ(stream.synchronize(patience).failure().status, bad);
            EXPECT_EQ(stream.launch(*work.kernel, {0, 1, 1}, {}).failure().status, bad);
            return work.affine(stream, 1, 2);
          })
          .value();
  other->replay(*graph).value();
  other->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, 3));
  EXPECT_EQ(device_->elapsed_us(*event, *event).failure().status, Status::invalid_argument);
}

TEST_P(ConformanceGraph, ForgetsWhatIsDiscardedWhileRecording) {
  const Work work(*device_);
  const auto graph = device_
                         ->create_graph([&](Stream& stream) {
                           work.affine(stream, 1, 1).value();
                           stream.discard();
                           return work.affine(stream, 1, 2);
                         })
                         .value();
  const auto stream = device_->create_stream().value();
  stream->replay(*graph).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, 2));
}

TEST_P(ConformanceGraph, AFailureWhileRecordingIsPassedOn) {
  const Work work(*device_);
  const auto graph = device_->create_graph([&](Stream& stream) -> Result<void> {
    work.affine(stream, 1, 1).value();
    return Failure{Status::launch, "no more", "and why"};
  });
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.failure().status, Status::launch);
  EXPECT_EQ(graph.failure().message, "no more");
  EXPECT_EQ(graph.failure().log, "and why");
  const auto stream = device_->create_stream().value();
  work.affine(*stream, 1, 5).value();
  stream->synchronize(patience).value();
  EXPECT_EQ(download_floats(*device_, *work.x), std::vector<float>(64, 5)) << "the device goes on";
}

TEST_P(ConformanceGraph, BelongsToItsDevice) {
  const auto other = open();
  const auto graph = other->create_graph([](Stream&) { return Result<void>{}; }).value();
  const auto stream = device_->create_stream().value();
  EXPECT_EQ(stream->replay(*graph).failure().status, Status::invalid_argument);
  // Kernels and buffers of another device can't be recorded either.
  const Work work(*device_);
  const auto foreign = other->create_graph([&](Stream& recorder) {
    EXPECT_EQ(recorder.fill(*work.x, 0, 4, 0).failure().status, Status::invalid_argument);
    return work.affine(recorder, 1, 1);
  });
  EXPECT_EQ(foreign.failure().status, Status::invalid_argument);
}

}  // namespace

}  // namespace greta::test::conformance_graph_test
