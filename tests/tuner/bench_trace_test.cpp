// Protects: the clock alignment of traces. Device events lie between the corresponding host times.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/bench/trace.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::test::bench_trace_test {
namespace {

nlohmann::json written(const Trace& trace) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(trace.write(folder.path() / "t.json"));
  return nlohmann::json::parse(std::ifstream(folder.path() / "t.json"));
}

TEST(BenchTrace, LaunchesLieWithinTheHostsWait) {
  const auto device = std::move(open_device("vulkan:0", {}).value());
  Trace trace;
  DeviceTrace on_device(*device, trace);
  auto timer = std::move(LaunchTimer::create(*device, 0).value());
  const LaunchTimer::Record steady = [&](Stream& stream) {
    return timer.reference_kernel()->record(stream, ReferenceKernel::steady);
  };
  ASSERT_TRUE(on_device.align());
  timer.set_observer(
      [&](const Event& start, const Event& stop) { return on_device.add("steady", start, stop); });
  const auto before = TelemetrySink::Clock::now();
  const auto samples = timer.take(steady, 5, 1, std::chrono::seconds(30));
  ASSERT_TRUE(samples);
  trace.span("around", before, TelemetrySink::Clock::now() - before);

  const auto json = written(trace);
  const double slack = json["otherData"]["alignment_error_us"]["vulkan:0"].get<double>() + 1;
  double start = 0, stop = 0, last = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] != "around") continue;
    start = event["ts"].get<double>();
    stop = start + event["dur"].get<double>();
  }
  EXPECT_GT(stop, start);
  std::size_t found = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] != "steady") continue;
    EXPECT_EQ(event["pid"], 1);
    const double at = event["ts"].get<double>();
    EXPECT_GE(at, start - slack);
    EXPECT_LE(at + event["dur"].get<double>(), stop + slack);
    EXPECT_GE(at, last);
    EXPECT_NEAR(event["dur"].get<double>(), (*samples)[found], 0.01 * (*samples)[found] + 0.01);
    last = at;
    ++found;
  }
  EXPECT_EQ(found, 5U);
}

TEST(BenchTrace, HoldsWhatTelemetryTells) {
  Trace trace;
  telemetry::set_sink(&trace);
  {
    const telemetry::Span span("work \"quoted\"");
    telemetry::count("things", 3);
  }
  telemetry::set_sink(nullptr);
  const auto events = written(trace)["traceEvents"];
  ASSERT_EQ(events.size(), 3U);  // the host's name is first
  EXPECT_EQ(events[1]["name"], "things");
  EXPECT_EQ(events[1]["ph"], "i");
  EXPECT_EQ(events[1]["args"]["amount"], 3);
  EXPECT_EQ(events[2]["name"], "work \"quoted\"");
  EXPECT_EQ(events[2]["ph"], "X");
  EXPECT_GE(events[2]["dur"].get<double>(), 0);
  EXPECT_FALSE(trace.write("/nonexistent/t.json"));
}

}  // namespace
}  // namespace greta::test::bench_trace_test
