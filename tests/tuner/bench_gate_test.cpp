// Protects: gates. Their text is read or refused with its reason, and a gate is missed only if the
// whole interval of what was measured exceeds its limit.

#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "tests/layers.hpp"
#include "tuner/bench/gate.hpp"

namespace greta::test::bench_gate_test {
namespace {

const std::vector<std::string> variants{"naive", "tiled", "vendor"};

Gate gate(const std::string& text) {
  return parse_gate(text, variants, "/presets").value();
}

std::string gate_failure(const std::string& text) {
  const auto read = parse_gate(text, variants, "/presets");
  return read ? "" : read.failure().message;
}

TEST(BenchGate, IsReadFromText) {
  using enum Gate::Measure;
  for (const auto& [text, measure, limit] : {std::tuple{"us <= 40", us, 40.0},
                                             {"us<=2.5e3", us, 2500.0},
                                             {" us ≤ 40 ", us, 40.0},
                                             {"tflops >= 1.2", tflops, 1.2},
                                             {"gbps ≥ 500", gbps, 500.0},
                                             {"roofline >= 60 %", roofline, 0.6},
                                             {"roofline>=0.6", roofline, 0.6},
                                             {"error <= 50%", error, 0.5},
                                             {"error <= 0", error, 0.0},
                                             {">= 1.1x default", speed, 1.1},
                                             {"≥10× naive", speed, 10.0}}) {
    const Gate read = gate(text);
    EXPECT_EQ(read.measure, measure) << text;
    EXPECT_DOUBLE_EQ(read.limit, limit) << text;
    EXPECT_TRUE(read.device.empty()) << text;
  }
  EXPECT_EQ(gate(">= 2x default").reference, Gate::Reference::fallback);
  EXPECT_EQ(gate(">= 0.95x vendor on hip:0").variant, "vendor");
  const Gate other = gate(">= 10x vulkan:8600g.csv on NVIDIA H200");
  EXPECT_EQ(other.reference, Gate::Reference::file);
  EXPECT_EQ(other.file, "/presets/8600g.csv");
  EXPECT_EQ(other.backend, "vulkan");
  EXPECT_EQ(other.device, "NVIDIA H200");
  EXPECT_EQ(other.text, ">= 10x vulkan:8600g.csv on NVIDIA H200");
  EXPECT_EQ(gate(">= 2x hip-host:/a b/c.csv").file, "/a b/c.csv");
  EXPECT_EQ(gate(">= 2x hip-host:/a b/c.csv").backend, "hip-host");
  EXPECT_TRUE(gate(">= 2x c.csv").backend.empty());
}

TEST(BenchGate, MistakesAreToldOnOneLine) {
  for (const auto& [text, expected] :
       {std::pair{"us < 40", "none of the limits"},
        {"us >= 40", "none of the limits"},
        {"tflops <= 3", "none of the limits"},
        {"", "none of the limits"},
        {"us <= -3", "none of the limits"},
        {"us <= 40 on", "none of the limits"},
        {"us <= 40 µs", "none of the limits"},
        {"us <= 0", "no number above 0"},
        {"us <= 1e999", "no number above 0"},
        {">= 0x naive", "no number above 0"},
        {"us <= 40 %", "has no percent"},
        {"roofline >= 60", "a share of at most 1"},
        {">= 2x nope", "which is none of default, naive, tiled, vendor and a CSV file"},
        {"us <= 4\n0", "us <= 4\\x0a0"}}) {
    EXPECT_NE(gate_failure(text).find(expected), std::string::npos)
        << text << " gave " << gate_failure(text);
    EXPECT_EQ(gate_failure(text).find('\n'), std::string::npos);
  }
  EXPECT_NE(gate_failure(">= 1x " + std::string(1 << 20, 'a')), "");  // no deep recursion
}

// Editors refuse by the pattern what the reader refuses, except for the names of variants and
// numbers out of range.
TEST(BenchGate, ThePatternOfTheSchemaIsThatOfTheReader) {
  const std::regex pattern(gate_pattern());
  for (const char* text : {"us <= 40", "roofline >= 60 %", " >= 1.1x default on hip ",
                           ">= 10x vulkan:8600g.csv", "error ≤ 0.5"}) {
    EXPECT_TRUE(std::regex_match(text, pattern)) << text;
    EXPECT_TRUE(parse_gate(text, variants, {})) << text;
  }
  for (const char* text : {"us < 40", "us >= 40", "faster", ">= x default", ">= 2 default", ""}) {
    EXPECT_FALSE(std::regex_match(text, pattern)) << text;
    EXPECT_FALSE(parse_gate(text, variants, {})) << text;
  }
}

TEST(BenchGate, ConcernsTheDevicesThatItNames) {
  DeviceInfo info;
  info.backend = Api::hip;
  info.index = 1;
  info.name = "NVIDIA H200";
  info.architecture = "sm_90";
  for (const char* device : {"", "hip", "hip:1", "h200", "NVIDIA H200", "sm_90"}) {
    Gate one = gate("us <= 1");
    one.device = device;
    EXPECT_TRUE(one.concerns(info)) << device;
  }
  for (const char* device : {"vulkan", "hip:0", "hip:11", "H100"}) {
    Gate one = gate("us <= 1");
    one.device = device;
    EXPECT_FALSE(one.concerns(info)) << device;
  }
}

/// Blocks around a time, whose medians differ by `spread` (standard deviation, relative).
MeasuredResult measured(double us, double spread, int blocks, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> scatter(0, spread);
  MeasuredResult result;
  result.us.median = us;
  result.work = {.flops = 1e6 * us, .bytes = 1e3 * us};  // 1 TFLOPS, 1 GB/s
  result.roofline = 0.5;
  result.verdict.error = 0.25;
  result.verdict.bound = 1;
  for (int i = 0; i < blocks; ++i) {
    const double middle = us * std::exp(scatter(random));
    result.samples.blocks_us.push_back({0.999 * middle, middle, 1.001 * middle});
  }
  return result;
}

GateOutcome outcome(const std::string& text, const MeasuredResult& result,
                    const MeasuredResult* reference = nullptr) {
  return judge(gate(text), "name", result, reference).outcome;
}

TEST(BenchGate, IsMissedIfTheWholeIntervalExceedsTheLimit) {
  using enum GateOutcome;
  const auto steady = measured(100, 0.01, 10);
  for (const auto& [text, expected] : {std::pair{"us <= 105", met},
                                       {"us <= 95", missed},
                                       {"us <= 100", inconclusive},
                                       {"tflops >= 0.95", met},
                                       {"tflops >= 1.05", missed},
                                       {"tflops >= 1", inconclusive},
                                       {"gbps >= 0.9", met},
                                       {"gbps >= 1.1", missed},
                                       {"roofline >= 45 %", met},
                                       {"roofline >= 55 %", missed},
                                       {"error <= 25 %", met},
                                       {"error <= 24 %", missed}}) {
    EXPECT_EQ(outcome(text, steady), expected) << text;
  }
  // Noise hides an excess that is smaller than it.
  EXPECT_EQ(outcome("us <= 95", measured(100, 0.2, 10)), inconclusive);
  EXPECT_EQ(outcome("us <= 40", measured(100, 0.2, 10)), missed);
  // Two blocks suffice for a large excess.
  EXPECT_EQ(outcome("us <= 10", measured(100, 0.01, 2)), missed);
}

TEST(BenchGate, ARatioIsThatOfBlocksTakenTogether) {
  using enum GateOutcome;
  // Both are disturbed together, so that their ratio is known far better than their times.
  const auto fast = measured(100, 0.3, 10), slow = measured(150, 0.3, 10);
  EXPECT_EQ(outcome(">= 1.45x naive", fast, &slow), met);
  EXPECT_EQ(outcome(">= 1.55x naive", fast, &slow), missed);
  EXPECT_EQ(outcome(">= 1.45x a.csv", fast, &slow), inconclusive);  // of another time
  EXPECT_EQ(outcome(">= 1.1x default", fast, &fast), missed);       // the default itself
  EXPECT_EQ(outcome(">= 1x default", fast, &fast), met);
  EXPECT_EQ(outcome(">= 1x default", fast), not_measured);
}

TEST(BenchGate, ABaselineOfAnotherDeviceNeedsNoSamples) {
  using enum GateOutcome;
  MeasuredResult other;
  other.us = {.median = 1000, .low = 990, .high = 1010};
  const auto fast = measured(100, 0.01, 10);
  EXPECT_EQ(outcome(">= 9.5x a.csv", fast, &other), met);
  EXPECT_EQ(outcome(">= 10.5x a.csv", fast, &other), missed);
  EXPECT_EQ(outcome(">= 10x a.csv", fast, &other), inconclusive);
}

TEST(BenchGate, WhatIsNotMeasuredIsNoSuccess) {
  auto failed = measured(100, 0.01, 10);
  failed.failure = Failure{Status::correctness, "wrong", {}};
  const auto result = judge(gate("us <= 1000"), "name", failed, nullptr);
  EXPECT_TRUE(result.failed());
  EXPECT_EQ(measured_text(result), "it fails: correctness");
  failed.failure = Failure{Status::unavailable, "interrupted", {}};
  EXPECT_EQ(measured_text(judge(gate("us <= 1000"), "name", failed, nullptr)),
            "interrupted after 10 blocks");
  auto unknown = measured(100, 0.01, 10);
  unknown.roofline = 0;
  EXPECT_EQ(gate_text(judge(gate("roofline >= 1 %"), "name", unknown, nullptr)),
            "roofline >= 1 %: not measured, no peaks of the device are known");
}

// At the limit itself, at most 2.5 % of all runs may say that it is missed.
TEST(BenchGate, FalseAlarmsAreRare) {
  int alarms = 0;
  constexpr unsigned runs = 2000;
  for (unsigned seed = 0; seed < runs; ++seed)
    alarms += outcome("us <= 100", measured(100, 0.05, 10, seed)) == GateOutcome::missed ? 1 : 0;
  EXPECT_LT(alarms, runs * 4 / 100);
}

TEST(BenchGate, TheFastestRowOfTheProblemIsTheBaseline) {
  std::vector<MeasuredResult> rows(6, measured(100, 0, 2));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].subject.problem = Problem::parse("gemm dtype=f32 out=f32 m=1 n=2 k=3").value();
    rows[i].subject.backend = "vulkan";
    rows[i].subject.cache = CacheState::cold;
    rows[i].us.median = 100 - static_cast<double>(i);
  }
  rows[1].subject.backend = "hip";
  rows[2].failure = Failure{Status::correctness, "wrong", {}};
  rows[3].subject.cache = CacheState::warm;
  rows[4].subject.problem = Problem::parse("gemm dtype=f32 out=f32 m=1 n=2 k=4").value();
  rows[5].subject.origin = ResultOrigin::stand_in;
  const Problem& problem = rows[0].subject.problem;
  EXPECT_EQ(baseline_of(gate(">= 1x vulkan:a.csv"), problem, CacheState::cold, rows)->us.median,
            100);
  EXPECT_EQ(baseline_of(gate(">= 1x a.csv"), problem, CacheState::cold, rows)->us.median, 99);
  EXPECT_FALSE(baseline_of(gate(">= 1x hip-host:a.csv"), problem, CacheState::cold, rows));
}

}  // namespace
}  // namespace greta::test::bench_gate_test
