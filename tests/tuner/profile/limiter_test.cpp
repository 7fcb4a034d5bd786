// Protects: the sentence that names what limits a kernel, for each resource and without counters.

#include "tuner/profile/limiter.hpp"

#include <gtest/gtest.h>

#include "tests/layers.hpp"

namespace greta::test::limiter_test {
namespace {

using Figures = std::map<std::string, double>;

Profile sample_profile() {
  Profile profile;
  profile.work = {.flops = 2e9, .bytes = 100e6};
  profile.copy_gbps = 3000;
  profile.arithmetic_gflops = 100e3;
  profile.roofline_us = 33.3;
  return profile;
}

/// A way that takes 100 µs.
ProfiledWay sample_way(const Figures& figures) {
  ProfiledWay way{.name = "winner", .config = {}};
  way.us = {99, 101, 100};
  way.counters = Counters{.source = "CUPTI 13.0", .passes = 1, .cold = true, .figures = figures};
  return way;
}

std::string limiter_of(const Figures& figures) {
  return limiter(sample_profile(), sample_way(figures));
}

TEST(Limiter, MemoryBandwidthIsOfTheMeasuredCopy) {
  EXPECT_EQ(
      limiter_of(
          {{"memory_read_bytes", 200e6}, {"memory_write_bytes", 70e6}, {"matrix_share", 0.3}}),
      "limited by memory bandwidth: 2700 of 3000 GB/s");
}

// RADV counts reads only.
TEST(Limiter, ReadsAloneCanShowThatMemoryIsTheLimit) {
  EXPECT_EQ(limiter_of({{"memory_read_bytes", 210e6}, {"fma_share", 0.3}}),
            "limited by memory bandwidth: 2100 of 3000 GB/s by reads alone");
}

TEST(Limiter, SharedMemoryIsToldInBytesAClock) {
  const Figures figures{
      {"shared_bytes_per_clock", 91}, {"shared_peak_bytes_per_clock", 128}, {"matrix_share", 0.5}};
  EXPECT_EQ(limiter_of(figures), "limited by shared-memory bandwidth: 91 of 128 bytes a clock");
  Figures conflicts = figures;
  conflicts["shared_conflict_share"] = 0.12;
  EXPECT_EQ(limiter_of(conflicts),
            "limited by shared-memory bandwidth: 91 of 128 bytes a clock, 12 % of them for bank "
            "conflicts");
}

TEST(Limiter, TheBusiestUnitIsNamed) {
  for (const auto& [figure, resource] :
       std::map<std::string, std::string>{{"matrix_share", "the matrix units"},
                                          {"fma_share", "the FMA units"},
                                          {"alu_share", "the integer units"},
                                          {"memory_unit_share", "the load/store units"},
                                          {"issue_share", "the rate of instructions"},
                                          {"l2_share", "L2 bandwidth"},
                                          {"l1_share", "the data path of L1 and shared memory"}}) {
    EXPECT_EQ(limiter_of({{figure, 0.93}, {"occupancy_share", 1}}),
              "limited by " + resource + ": 93 % of the peak");
  }
}

// A counted run includes the time around its launch, in which L2 does nothing.
TEST(Limiter, SharesOfElapsedTimeAreOfTheTimedRun) {
  EXPECT_EQ(limiter_of({{"l2_share", 0.4}, {"counted_us", 200}}),
            "limited by L2 bandwidth: 80 % of the peak");
}

TEST(Limiter, UnevenWorkComesBeforeLatency) {
  EXPECT_EQ(limiter_of({{"matrix_share", 0.4}, {"balance_share", 0.5}}),
            "limited by uneven work: the compute units are busy 50 % of the time of the longest");
}

TEST(Limiter, LatencySaysWhatWarpsWaitFor) {
  EXPECT_EQ(limiter_of({{"matrix_share", 0.31},
                        {"balance_share", 0.97},
                        {"occupancy_share", 0.25},
                        {"stall_long_scoreboard_share", 0.61},
                        {"stall_barrier_share", 0.12},
                        {"stall_wait_share", 0.1},
                        {"stall_selected_share", 0.9}}),
            "limited by latency: nothing is busier than the matrix units at 31 %; occupancy 25 %; "
            "warps wait for loads from memory, L2 or L1 (61 % of their time), for other warps at "
            "barriers (12 % of their time)");
}

TEST(Limiter, WithoutCountersTheRooflineSpeaks) {
  ProfiledWay way = sample_way({});
  way.counters.reset();
  EXPECT_EQ(limiter(sample_profile(), way),
            "at 33 % of the roofline of memory bandwidth: 1000 of 3000 GB/s; only counters show "
            "what else limits it");
  way.us = {34, 36, 35};
  EXPECT_EQ(limiter(sample_profile(), way),
            "near the roofline of memory bandwidth: 2857 of 3000 GB/s");
  Profile arithmetic = sample_profile();
  arithmetic.work.flops = 9e9;
  arithmetic.roofline_us = 90;
  way.us = {99, 101, 100};
  EXPECT_EQ(limiter(arithmetic, way), "near the roofline of arithmetic: 90.0 TFLOPS of 100 TFLOPS");
}

TEST(Limiter, AFailedWayHasNone) {
  ProfiledWay way = sample_way({{"matrix_share", 0.9}});
  way.trial.failure = Status::compile;
  EXPECT_EQ(limiter(sample_profile(), way), "");
}

TEST(Limiter, WithoutPeaksAndTimesNothingIsInvented) {
  Profile profile = sample_profile();
  profile.copy_gbps = profile.roofline_us = 0;
  ProfiledWay way = sample_way({{"memory_read_bytes", 1e9}, {"memory_write_bytes", 1e9}});
  EXPECT_TRUE(usages(profile, way).empty());
  way.counters.reset();
  EXPECT_EQ(limiter(profile, way), "");
}

}  // namespace
}  // namespace greta::test::limiter_test
