// Protects: the benchmarks of the machine. Their kernels move what they claim, on every device and
// compiled for GPUs that are not here; ladders begin in the smallest cache; memory is given up
// where it does not suffice.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "runtime/device/backend.hpp"
#include "tests/counted_stream.hpp"
#include "tests/layers.hpp"
#include "tuner/bench/benchmark_names.hpp"
#include "tuner/bench/device_work.hpp"
#include "tuner/bench/memory_kernels.hpp"
#include "tuner/bench/peer_benchmarks.hpp"
#include "tuner/bench/peer_pair.hpp"
#include "tuner/bench/same_bits.hpp"
#include "tuner/compile/target_compiler.hpp"
#include "tuner/measure/ceiling_kernels.hpp"

namespace greta::test::machine_test {
namespace {

std::string name_of(const testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ':' || c == '-'; }, '_');
  return name;
}

class MachineKernels : public testing::TestWithParam<const char*> {};

TEST_P(MachineKernels, CompileWithoutSpillsForGpusThatAreNotHere) {
  const auto target = create_hip_target(GetParam(), {}).value();
  const DeviceInfo& info = target->target();
  for (const auto& source : {write_kernel(info), triad_kernel(info), walk_kernel(info),
                             same_bits_kernel(info, false), same_bits_kernel(info, true)}) {
    const auto compiled = target->compile(source);
    ASSERT_TRUE(compiled) << compiled.failure().message << compiled.failure().log;
    EXPECT_FALSE(compiled->statistics.spills()) << source.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, MachineKernels, testing::Values("gfx942", "gfx1100"),
                         name_of);
#ifdef GRETA_TEST_NVRTC
INSTANTIATE_TEST_SUITE_P(Nvidia, MachineKernels, testing::Values("sm_80", "sm_90"), name_of);
#endif

class Machine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { device_ = open_device(GetParam(), {}).value(); }

  /// Runs a kernel on `arrays` arrays of three chunks, which hold 0, 1, 2, … as floats, with two
  /// workgroups, and returns the memory.
  std::vector<float> run(const KernelSource& source, std::uint32_t arrays, std::uint32_t number) {
    constexpr std::uint32_t chunks = 3;
    std::vector<float> memory(arrays * chunks * copy_group_bytes / sizeof(float));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i % 1000);
    DeviceWork work;
    auto buffer = add_buffer(*device_, work, memory.size() * sizeof(float)).value();
    device_->upload(*buffer, 0, std::as_bytes(std::span(memory))).value();
    const auto kernel = add_kernel(*device_, work, source).value();
    set_arguments(work, buffer->address(), chunks, number);
    auto stream = device_->create_stream().value();
    stream->launch(*kernel, {2, 1, 1}, work.arguments).value();
    stream->synchronize(std::chrono::seconds(60)).value();
    device_->download(*buffer, 0, std::as_writable_bytes(std::span(memory))).value();
    return memory;
  }

  std::unique_ptr<Device> device_;
};

TEST_P(Machine, WritesAllMemory) {
  const auto memory = run(write_kernel(device_->info()), 1, 2);
  for (std::size_t i = 0; i < memory.size(); i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, &memory[i], sizeof word);
    ASSERT_EQ(word, 0x3F9D70A4U) << i;
  }
}

TEST_P(Machine, TriadAddsTwoArrays) {
  const auto memory = run(triad_kernel(device_->info()), 3, 2);
  const std::size_t array = memory.size() / 3;
  for (std::size_t i = 0; i < array; ++i) {
    const auto b = static_cast<float>((i + array) % 1000),
               c = static_cast<float>((i + 2 * array) % 1000);
    ASSERT_NEAR(memory[i], b + 0.4F * c, 1e-3) << i;
    ASSERT_EQ(memory[i + array], b);
  }
}

TEST_P(Machine, ReadingChangesNothing) {
  const auto memory = run(walk_kernel(device_->info()), 1, 7);
  for (std::size_t i = 0; i < memory.size(); ++i)
    ASSERT_EQ(memory[i], static_cast<float>(i % 1000)) << i;
}

TEST_P(Machine, EveryNameHasBenchmarksAndPeersWhereThereAreSome) {
  std::set<std::string> names;
  for (const std::string& name : names_of(platform_names())) {
    const auto list = platform_benchmarks(*device_, {name});
    EXPECT_EQ(list.empty(), name.starts_with("peer_") && !why_no_peers(*device_).empty()) << name;
    for (const Benchmark& benchmark : list) {
      EXPECT_EQ(benchmark.subject.problem.op, name);
      EXPECT_TRUE(names.insert(benchmark.name()).second) << benchmark.name();
    }
  }
}

TEST_P(Machine, LaddersBeginInTheSmallestCache) {
  for (const char* name : {"cache_bandwidth", "cache_latency"}) {
    const auto list = platform_benchmarks(*device_, {name});
    ASSERT_GE(list.size(), 5U);
    EXPECT_EQ(list.front().subject.problem.dim("bytes"), 16384);
    for (std::size_t i = 1; i < list.size(); ++i) {
      EXPECT_GT(list[i].subject.problem.dim("bytes"), list[i - 1].subject.problem.dim("bytes"));
    }
    EXPECT_LE(list.back().subject.problem.dim("bytes"),
              static_cast<std::int64_t>(device_->info().memory_bytes / 2));
    const auto samples = list.front().take(3).value();
    EXPECT_EQ(samples.size(), 3U);
    EXPECT_GT(samples.front(), 0);
  }
}

TEST_P(Machine, CopiesToPeersAreTimedForEachOne) {
  const bool host = device_->info().backend == Api::hip_host;
  EXPECT_EQ(why_no_peers(*device_).empty(), host);
  const auto pairs = peer_pairs(*device_);
  std::uint64_t most = device_->memory().in_use_bytes;
  for (const char* name : {"peer_write", "peer_read", "peer_both_ways", "peer_latency"}) {
    const auto list = peer_benchmarks(*device_, name, pairs);
    EXPECT_EQ(list.size(), host ? 4U : 0U) << name;
    if (list.empty()) continue;
    const auto samples = list.front().take(2);
    ASSERT_TRUE(samples) << name << samples.failure().message;
    EXPECT_EQ(samples->size(), 2U);
    EXPECT_GT(samples->front(), 0) << name;
    // All benchmarks of a peer share the memory that each of them states.
    EXPECT_GT(list.front().device_bytes, 0U);
    if (most == 0) most = list.front().device_bytes;
    EXPECT_EQ(device_->memory().in_use_bytes, most);
  }
}

// The lock of a card must cover each card that is measured.
TEST_P(Machine, CardsOfCopiesToPeersAreThePeersToo) {
  const bool host = device_->info().backend == Api::hip_host;
  ProbedDevice self;
  self.info = device_->info();
  EXPECT_EQ(cards_of({self}, {"copy", "peer_read"}).size(), host ? 5U : 1U);
  EXPECT_EQ(cards_of({self}, {"copy"}).size(), 1U);
}

TEST(Machine, PeersAreOfTheSameDriver) {
  std::vector<ProbedDevice> all(5);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].usable = true;
    all[i].info.backend = Api::hip;
    all[i].info.index = static_cast<int>(i);
    all[i].info.vendor = i < 3 ? "AMD" : "NVIDIA";
    all[i].info.driver = i < 3 ? "HIP 6.2, amdgpu 6.8" : "NVIDIA 550, CUDA 12.4";
  }
  all[1].usable = false;
  const auto indices = [&](std::size_t of) {
    std::vector<int> list;
    for (const ProbedDevice& peer : peers_among(all[of].info, all)) list.push_back(peer.info.index);
    return list;
  };
  EXPECT_EQ(indices(0), std::vector<int>{2});
  EXPECT_EQ(indices(4), std::vector<int>{3});
}

// One side's copies write to the other's memory, which may be freed only after both are done.
TEST(Machine, BothSidesOfAPairAreWaitedForAfterAFailure) {
  const Failure refused{Status::launch, "refused", {}}, late{Status::timeout, "late", {}};
  const auto run = [](CountedStream& a, CountedStream& b) {
    const std::array<Stream*, 2> both{&a, &b};
    return run_together(both, std::chrono::seconds(1));
  };
  for (const bool first : {true, false}) {
    CountedStream fails, fine;
    fails.submitted = refused;
    const RanTogether ran = first ? run(fails, fine) : run(fine, fails);
    ASSERT_FALSE(ran.result);
    EXPECT_EQ(ran.result.failure().message, "refused");
    EXPECT_FALSE(ran.stuck);
    EXPECT_EQ(fine.waits, 1);
    EXPECT_EQ(fails.discards, 1);
  }
  CountedStream hangs, fine;
  hangs.waited = late;
  const RanTogether ran = run(hangs, fine);
  EXPECT_EQ(ran.result.failure().status, Status::timeout);
  EXPECT_TRUE(ran.stuck) << "its work may still use the memory of both";
  EXPECT_EQ(fine.waits, 1);
}

TEST_P(Machine, TransfersRunTogether) {
  for (const char* name : {"upload_stream", "download_stream", "both_ways", "upload_and_compute",
                           "both_ways_and_compute", "synchronise_graph"}) {
    const auto samples = platform_benchmarks(*device_, {name}).front().take(2);
    ASSERT_TRUE(samples) << name << samples.failure().message;
    EXPECT_EQ(samples->size(), 2U);
    EXPECT_GT(samples->front(), 0) << name;
  }
}

TEST_P(Machine, MemoryOfOthersIsGivenUp) {
  const std::uint64_t third = device_->info().memory_bytes / 6;  // of what may be held
  HeldWork shelf;
  std::vector<std::shared_ptr<DeviceWork>> works;
  for (int i = 0; i < 4; ++i) {
    works.push_back(std::make_shared<DeviceWork>());
    works.back()->parts = 7;  // a mark
    shelf.make_room(*device_, works.back(), third);
    if (i == 2) shelf.make_room(*device_, works[0], third);  // used again
  }
  EXPECT_EQ(works[0]->parts, 7);
  EXPECT_EQ(works[1]->parts, 1);  // the one that has not run for the longest time
  EXPECT_EQ(works[2]->parts, 7);
  EXPECT_EQ(works[3]->parts, 7);
}

INSTANTIATE_TEST_SUITE_P(Devices, Machine, testing::Values("vulkan:0", "hip-host:0"), name_of);

}  // namespace
}  // namespace greta::test::machine_test
