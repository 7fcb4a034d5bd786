// Protects: blocks of samples that are taken in separate processes. Every benchmark gets its
// blocks, and a failure only affects the benchmark that caused it.

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>

#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/bench/block_processes.hpp"
#include "tuner/bench/kernel_benchmarks.hpp"

namespace greta::test::bench_blocks_test {
namespace {

Benchmark benchmark_named(const std::string& op) {
  Benchmark benchmark;
  benchmark.kind = Benchmark::Kind::runtime;
  benchmark.subject.problem.op = op;
  benchmark.subject.typed = false;
  return benchmark;
}

Benchmark kernel_named(std::int64_t m) {
  Benchmark benchmark;
  benchmark.subject.problem.op = "gemm";
  benchmark.subject.problem.dims = {{"m", m}};
  benchmark.subject.config = Config{"tiled", {{"BM", 16}}};
  benchmark.subject.origin = ResultOrigin::untuned;
  benchmark.device_bytes = 1000;
  benchmark.processor = [] { return ProcessorTime{}; };
  return benchmark;
}

// A tiny kernel on a CPU takes no time beside the flush of the caches before each of its samples.
TEST(SamplesOfABlock, AreThoseThatThereIsTimeFor) {
  EXPECT_EQ(samples_of_block(20, 5, 0), 20);  // a GPU, whatever else a sample takes
  EXPECT_EQ(samples_of_block(20, 1e6, 0), 3);
  EXPECT_EQ(samples_of_block(20, 9e6, 0), 1);
  EXPECT_EQ(samples_of_block(20, 5, 1e4), 20);
  EXPECT_EQ(samples_of_block(20, 5, 2e5), 5);
  EXPECT_EQ(samples_of_block(20, 5, 3e6), 1);
}

class BenchBlocks : public testing::Test {
 protected:
  // Runs a shell script instead of the program. The request is in $request and is logged.
  Benchmark apart(const std::string& script, const std::string& op, DeviceInfo device = {}) {
    return apart(script, benchmark_named(op), device);
  }
  Benchmark apart(const std::string& script, Benchmark benchmark, const DeviceInfo& device = {}) {
    if (!processes_) {
      const std::string read = "request=$(cat); echo \"$request\" >> " + log_.string() + "\n";
      processes_ =
          std::make_unique<BlockProcesses>(std::vector<std::string>{"sh", "-c", read + script},
                                           device, BlockProcesses::Options{"cache", {}, {}});
    }
    return processes_->apart(std::move(benchmark));
  }
  BlockProcesses& processes() { return *processes_; }
  std::vector<std::string> requests() const {
    std::vector<std::string> lines;
    std::ifstream in(log_);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

 private:
  test::TemporaryFolder folder_;
  std::filesystem::path log_ = folder_.path() / "log";
  std::unique_ptr<BlockProcesses> processes_;
};

TEST_F(BenchBlocks, AProcessTakesABlockOfAll) {
  const char* script = R"(echo "a driver says hello"
    echo '{"blocks":{"runtime/a":{"samples_us":[1,2],"control_us":5},"runtime/b":{"samples_us":[3]}}}')";
  const Benchmark a = apart(script, "a"), b = apart(script, "b");
  EXPECT_TRUE(a.apart);
  EXPECT_EQ(a.take(2).value(), (std::vector<double>{1, 2}));
  EXPECT_EQ(a.control().value(), 5);
  EXPECT_EQ(b.take(2).value(), std::vector<double>{3});
  EXPECT_FALSE(b.control());
  EXPECT_EQ(a.take(2).value(), (std::vector<double>{1, 2}));  // from the process that b started
  ASSERT_EQ(requests().size(), 2U);
  EXPECT_NE(requests()[0].find(R"("count":2,"calls":["runtime/a"])"), std::string::npos);
  EXPECT_NE(requests()[1].find(R"(["runtime/a","runtime/b"])"), std::string::npos);
  EXPECT_EQ(a.take(2).value(), (std::vector<double>{1, 2}));
  EXPECT_EQ(requests().size(), 3U);
}

TEST_F(BenchBlocks, EachProcessMeasuresAllThatAreExpected) {
  const char* script =
      R"(echo '{"blocks":{"runtime/a":{"samples_us":[1]},"runtime/b":{"samples_us":[3]}}}'
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

TEST_F(BenchBlocks, OnTheCpuProcessesTakeTurnsOnTheCores) {
  DeviceInfo cpu;
  cpu.kind = DeviceKind::cpu;
  const Benchmark a = apart(R"(echo '{"blocks":{"runtime/a":{"samples_us":[1]}}}')", "a", cpu);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(a.take(1));
  EXPECT_NE(requests()[0].find(R"("core":0)"), std::string::npos);
  EXPECT_NE(requests()[1].find(R"("core":1)"), std::string::npos);
}

// Answers every kernel of a request with a block.
constexpr const char* answer_all = R"(
  for name in $(echo "$request" | grep -o 'kernel/gemm/[^"]*'); do
    blocks="$blocks${blocks:+,}\"$name\":{\"samples_us\":[4],\"control_us\":5,\"cpu_us\":[6]}"
  done
  echo "{\"blocks\":{$blocks}}")";

TEST_F(BenchBlocks, AProcessTimesAKernelByItsProblemAndConfiguration) {
  DeviceInfo cpu;
  cpu.kind = DeviceKind::cpu;
  const Benchmark kernel = apart(answer_all, kernel_named(8), cpu);
  EXPECT_EQ(kernel.device_bytes, 0U);  // this process holds none
  EXPECT_EQ(kernel.take(1).value(), std::vector<double>{4});
  EXPECT_EQ(kernel.control().value(), 5);
  EXPECT_EQ(kernel.processor().samples_us, std::vector<double>{6});
  ASSERT_EQ(requests().size(), 1U);
  for (const char* part : {R"("problem":"gemm dtype=f32 out=f32 m=8")", R"("variant":"tiled")",
                           R"(["BM",16])", R"("cold":true)", R"("timeout_s":30)"}) {
    EXPECT_NE(requests()[0].find(part), std::string::npos) << requests()[0];
  }
  EXPECT_EQ(requests()[0].find(R"("core")"), std::string::npos);  // it needs all cores
}

// The table of an embedding is large, but little of it is read.
TEST_F(BenchBlocks, ShortKernelsOnAGpuDependOnTheProcess) {
  DeviceInfo gpu, cpu;
  gpu.kind = DeviceKind::discrete_gpu;
  cpu.kind = DeviceKind::cpu;
  Benchmark kernel = kernel_named(8);
  kernel.work.bytes = 1e7;
  kernel.device_bytes = 10'000'000;
  EXPECT_TRUE(depends_on_process(kernel, gpu));
  EXPECT_FALSE(depends_on_process(kernel, cpu));
  kernel.device_bytes = 131'000'000;
  EXPECT_TRUE(depends_on_process(kernel, gpu));
  kernel.device_bytes = 1'000'000'000;
  EXPECT_FALSE(depends_on_process(kernel, gpu));
  kernel.device_bytes = 100'000'000;
  kernel.work.bytes = 1e8;
  EXPECT_FALSE(depends_on_process(kernel, gpu));
}

TEST_F(BenchBlocks, KernelsRunInAnotherOrderInEachProcess) {
  std::vector<Benchmark> kernels;
  std::vector<std::string> names;
  for (int m = 1; m <= 8; ++m) {
    kernels.push_back(apart(answer_all, kernel_named(m)));
    names.push_back(kernels.back().name());
  }
  processes().expect(names);
  for (int i = 0; i < 2; ++i) {
    for (const auto& kernel : kernels) EXPECT_TRUE(kernel.take(1));
  }
  ASSERT_EQ(requests().size(), 2U);
  EXPECT_EQ(requests()[0].size(), requests()[1].size());
  EXPECT_NE(requests()[0], requests()[1]);
}

// The process ends after a kernel that the device may not survive. The blocks of those that come
// later are of the next process, which does not run that kernel again.
TEST_F(BenchBlocks, WhatDamagesTheDeviceDoesNotSpoilOthers) {
  const char* script = R"(case $request in *m=1*)
    echo '{"blocks":{"kernel/gemm/f32/m=1/default":{"failure":{"status":"timeout","message":"hangs"}}}}';;
    *) echo '{"blocks":{"kernel/gemm/f32/m=2/default":{"samples_us":[4]}}}';; esac)";
  const Benchmark hangs = apart(script, kernel_named(1)), other = apart(script, kernel_named(2));
  processes().expect({hangs.name(), other.name()});
  EXPECT_TRUE(other.take(1));
  EXPECT_TRUE(other.take(1));
  EXPECT_EQ(requests().size(), 3U);  // both, then the other one alone, twice
  const auto failed = hangs.take(1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().message, "hangs");
  EXPECT_EQ(requests().size(), 3U);
}

TEST_F(BenchBlocks, AnInterruptEndsTheProcess) {
  const std::atomic<bool> stop{true};
  BlockProcesses processes({"sleep", "1000"}, DeviceInfo{}, {"cache", {}, {}, false, &stop});
  const auto samples = processes.apart(kernel_named(1)).take(1);
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.failure().status, Status::unavailable);
  EXPECT_EQ(samples.failure().message, "interrupted");
}

TEST_F(BenchBlocks, AFailureIsOfTheOneThatFails) {
  const char* script = R"(echo '{"blocks":{"runtime/a":{"samples_us":[1],"control_us":5},
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

TEST_F(BenchBlocks, WhatEndsItsProcessDoesNotEndOthers) {
  const char* script = R"(case $request in *runtime/b*) kill -9 $$;; esac
    echo '{"blocks":{"runtime/a":{"samples_us":[1],"control_us":5}}}')";
  const Benchmark a = apart(script, "a"), b = apart(script, "b");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(a.take(1));
    const auto dead = b.take(1);
    ASSERT_FALSE(dead);
    EXPECT_EQ(dead.failure().status, Status::crash);
    EXPECT_NE(dead.failure().message.find("signal 9"), std::string::npos);
  }
}

TEST_F(BenchBlocks, WhatADyingProcessSaysIsTold) {
  const Benchmark a = apart("echo first >&2; echo 'no device' >&2; exit 3", "a");
  EXPECT_EQ(a.take(1).failure().message, "the process that measures it exited with 3: no device");
}

TEST_F(BenchBlocks, SamplesThatAreNoneAreAFailure) {
  for (const char* block :
       {"{}", "[]", R"({"samples_us":[]})", R"({"samples_us":[null]})", R"({"samples_us":"many"})",
        R"({"failure":7})", R"({"samples_us":[1],"cpu_us":"many"})"}) {
    BlockProcesses processes({"echo", std::string(R"({"blocks":{"runtime/a":)") + block + "}}"},
                             DeviceInfo{}, {"cache", {}, {}});
    EXPECT_FALSE(processes.apart(benchmark_named("a")).take(1)) << block;
  }
}

TEST_F(BenchBlocks, OutputThatIsNoneIsAFailure) {
  const Benchmark a = apart(R"(echo '{"blocks":[1,')", "a");
  EXPECT_EQ(a.take(1).failure().message, "the process that measures it exited with 0");
}

TEST_F(BenchBlocks, AProgramThatIsNotThereIsAFailure) {
  BlockProcesses processes({"/none/such"}, DeviceInfo{}, {"cache", {}, {}});
  const auto samples = processes.apart(benchmark_named("a")).take(1);
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.failure().status, Status::unavailable);
}

}  // namespace
}  // namespace greta::test::bench_blocks_test
