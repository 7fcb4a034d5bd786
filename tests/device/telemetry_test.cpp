// Protects: telemetry is off without a sink, and spans measure their lifetime.

#include "runtime/device/telemetry.hpp"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::telemetry_test {

namespace {

struct Recorder final : TelemetrySink {
  void count(const char* name, std::uint64_t amount) override {
    const std::lock_guard lock(mutex);
    counters[name] += amount;
  }
  void span(const char* name, Clock::time_point, Clock::duration duration) override {
    const std::lock_guard lock(mutex);
    spans[name] += duration;
  }
  std::mutex mutex;
  std::map<std::string, std::uint64_t> counters;
  std::map<std::string, Clock::duration> spans;
};

/// Sends telemetry to a recorder during its lifetime.
struct Recording {
  Recording() { telemetry::set_sink(&recorder); }
  ~Recording() { telemetry::set_sink(nullptr); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  Recorder recorder;
};

TEST(Telemetry, IsOffUntilThereIsASink) {
  EXPECT_EQ(telemetry::sink(), nullptr);
  telemetry::count("lost");
  const telemetry::Span lost("lost");
  Recording recording;
  telemetry::count("kept", 3);
  telemetry::count("kept");
  { const telemetry::Span span("time"); }
  EXPECT_EQ(recording.recorder.counters, (std::map<std::string, std::uint64_t>{{"kept", 4}}));
  EXPECT_EQ(recording.recorder.spans.size(), 1U);
}

TEST(Telemetry, ASpanMeasuresItsLife) {
  Recording recording;
  {
    const telemetry::Span span("sleep");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(recording.recorder.spans["sleep"], std::chrono::milliseconds(5));
}

TEST(Telemetry, ASpanThatBeganWithoutASinkReportsNothing) {
  Recorder recorder;
  {
    const telemetry::Span span("early");
    telemetry::set_sink(&recorder);
  }
  telemetry::set_sink(nullptr);
  EXPECT_TRUE(recorder.spans.empty());
}

TEST(Telemetry, TheDeviceLayerReports) {
  Recording recording;
  const auto device = open_device(usable_devices().at(0), {}).value();
  const auto kernel = device->compile(affine_source(device->info())).value();
  const auto buffer = upload_floats(*device, std::vector<float>(64, 1));
  const auto stream = device->create_stream().value();
  const AffineArguments arguments{buffer->address(), 64, 1, 1, 1};
  stream->launch(*kernel, {1, 1, 1}, bytes_of(arguments)).value();
  stream->synchronize(patience).value();
  download_floats(*device, *buffer);
  auto& counters = recording.recorder.counters;
  EXPECT_EQ(counters["device.launches"], 1U);
  EXPECT_EQ(counters["device.uploaded_bytes"], 256U);
  EXPECT_EQ(counters["device.downloaded_bytes"], 256U);
  EXPECT_EQ(counters["device.cache_misses"], 1U);
  EXPECT_GT(recording.recorder.spans["device.compile"].count(), 0);
}

}  // namespace

}  // namespace greta::test::telemetry_test
