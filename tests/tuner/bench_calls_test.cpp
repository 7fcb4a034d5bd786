// Protects: calls measured in separate processes. Every benchmark gets its blocks, and a failure
// only affects the benchmark that caused it.

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/bench/call_processes.hpp"

namespace greta::test::bench_calls_test {
namespace {

Benchmark benchmark_named(const std::string& op) {
  Benchmark benchmark;
  benchmark.kind = Benchmark::Kind::runtime;
  benchmark.subject.problem.op = op;
  benchmark.subject.typed = false;
  return benchmark;
}

class BenchCalls : public testing::Test {
 protected:
  // Runs a shell script instead of the program. The request is in $request and is logged.
  Benchmark apart(const std::string& script, const std::string& op, DeviceInfo device = {}) {
    if (!processes_) {
      const std::string read = "request=$(cat); echo \"$request\" >> " + log_.string() + "\n";
      processes_ = std::make_unique<CallProcesses>(
          std::vector<std::string>{"sh", "-c", read + script}, device, "cache");
    }
    return processes_->apart(benchmark_named(op));
  }
  CallProcesses& processes() { return *processes_; }
  std::vector<std::string> requests() const {
    std::vector<std::string> lines;
    std::ifstream in(log_);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

 private:
  test::TemporaryFolder folder_;
  std::filesystem::path log_ = folder_.path() / "log";
  std::unique_ptr<CallProcesses> processes_;
};

TEST_F(BenchCalls, AProcessTakesABlockOfAll) {
  const char* script = R"(echo "a driver says hello"
    echo '{"calls":{"runtime/a":{"samples_us":[1,2],"control_us":5},"runtime/b":{"samples_us":[3]}}}')";
  const Benchmark a = apart(script, "a"), b = apart(script, "b");
  EXPECT_TRUE(a.apart);
  EXPECT_EQ(a.take(2).value(), (std::vector<double>{1, 2}));
  EXPECT_EQ(a.control().value(), 5);
  EXPECT_EQ(b.take(2).value(), std::vector<double>{3});
  EXPECT_FALSE(b.control());
  EXPECT_EQ(a.take(2).value(), (std::vector<double>{1, 2}));  // from the process that b started
  ASSERT_EQ(requests().size(), 2U);
  EXPECT_NE(requests()[0].find(R"("benchmarks":["runtime/a"],"count":2)"), std::string::npos);
  EXPECT_NE(requests()[1].find(R"(["runtime/a","runtime/b"])"), std::string::npos);
  EXPECT_EQ(a.take(2).value(), (std::vector<double>{1, 2}));
  EXPECT_EQ(requests().size(), 3U);
}

TEST_F(BenchCalls, EachProcessMeasuresAllThatAreExpected) {
  const char* script =
      R"(echo '{"calls":{"runtime/a":{"samples_us":[1]},"runtime/b":{"samples_us":[3]}}}'
    echo "a driver says goodbye")";
  const Benchmark a = apart(script, "a"), b = apart(script, "b");
  processes().expect({"runtime/a", "runtime/b"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(b.take(2));
    EXPECT_TRUE(a.take(2));
  }
  ASSERT_EQ(requests().size(), 3U);
  for (const auto& request : requests()) {
    EXPECT_NE(request.find(R"(["runtime/a","runtime/b"])"), std::string::npos);
  }
  EXPECT_TRUE(a.take(2));
  EXPECT_TRUE(b.take(7));  // the available block has another size
  EXPECT_EQ(requests().size(), 5U);
  processes().expect({"runtime/b"});
  EXPECT_TRUE(b.take(2));
  EXPECT_EQ(requests().back().find("runtime/a"), std::string::npos);
}

TEST_F(BenchCalls, OnTheCpuProcessesTakeTurnsOnTheCores) {
  DeviceInfo cpu;
  cpu.kind = DeviceKind::cpu;
  const Benchmark a = apart(R"(echo '{"calls":{"runtime/a":{"samples_us":[1]}}}')", "a", cpu);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(a.take(1));
  EXPECT_NE(requests()[0].find(R"("core":0)"), std::string::npos);
  EXPECT_NE(requests()[1].find(R"("core":1)"), std::string::npos);
}

TEST_F(BenchCalls, AFailureIsOfTheOneThatFails) {
  const char* script = R"(echo '{"calls":{"runtime/a":{"samples_us":[1],"control_us":5},
    "runtime/b":{"failure":{"status":"launch","message":"b is broken"}}}}' | tr -d '\n')";
  const Benchmark a = apart(script, "a"), b = apart(script, "b"), c = apart(script, "c");
  EXPECT_TRUE(a.take(1));
  const auto broken = b.take(1);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.failure().status, Status::launch);
  EXPECT_EQ(broken.failure().message, "b is broken");
  EXPECT_TRUE(a.take(1));
  EXPECT_EQ(c.take(1).failure().message, "its process did not report it");
}

TEST_F(BenchCalls, WhatEndsItsProcessDoesNotEndOthers) {
  const char* script = R"(case $request in *runtime/b*) kill -9 $$;; esac
    echo '{"calls":{"runtime/a":{"samples_us":[1],"control_us":5}}}')";
  const Benchmark a = apart(script, "a"), b = apart(script, "b");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(a.take(1));
    const auto dead = b.take(1);
    ASSERT_FALSE(dead);
    EXPECT_EQ(dead.failure().status, Status::crash);
    EXPECT_NE(dead.failure().message.find("signal 9"), std::string::npos);
  }
}

TEST_F(BenchCalls, WhatADyingProcessSaysIsTold) {
  const Benchmark a = apart("echo first >&2; echo 'no device' >&2; exit 3", "a");
  EXPECT_EQ(a.take(1).failure().message, "the process that measures it exited with 3: no device");
}

TEST_F(BenchCalls, SamplesThatAreNoneAreAFailure) {
  for (const char* block : {"{}", "[]", R"({"samples_us":[]})", R"({"samples_us":[null]})",
                            R"({"samples_us":"many"})", R"({"failure":7})"}) {
    CallProcesses processes({"echo", std::string(R"({"calls":{"runtime/a":)") + block + "}}"},
                            DeviceInfo{}, "cache");
    EXPECT_FALSE(processes.apart(benchmark_named("a")).take(1)) << block;
  }
}

TEST_F(BenchCalls, OutputThatIsNoneIsAFailure) {
  const Benchmark a = apart(R"(echo '{"calls":[1,')", "a");
  EXPECT_EQ(a.take(1).failure().message, "the process that measures it exited with 0");
}

TEST_F(BenchCalls, AProgramThatIsNotThereIsAFailure) {
  CallProcesses processes({"/none/such"}, DeviceInfo{}, "cache");
  const auto samples = processes.apart(benchmark_named("a")).take(1);
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.failure().status, Status::unavailable);
}

}  // namespace
}  // namespace greta::test::bench_calls_test
