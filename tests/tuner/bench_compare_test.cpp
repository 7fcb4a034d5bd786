// What compare makes of two baselines: noise is no regression, and a slowdown is found in spite of
// it.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tuner/bench/compare.hpp"

namespace greta {
namespace {

using Blocks = std::vector<std::vector<double>>;

constexpr int rows = 20;
constexpr int blocks = 24;
constexpr int samples = 5;

/// A run on a machine that other programs use as well: every so often some of its blocks are taken
/// while others work, which makes most of their samples slower, by up to half. Besides that samples
/// scatter with a heavy tail.
Blocks noisy(double us, std::mt19937_64& random) {
  std::normal_distribution<double> scatter(0, 0.02);
  std::uniform_real_distribution<double> chance(0, 1);
  Blocks taken;
  for (int b = 0; b < blocks; ++b) {
    const bool loaded = chance(random) < 0.3;
    std::vector<double> block;
    for (int s = 0; s < samples; ++s) {
      double factor = std::exp(std::abs(scatter(random)));
      if (chance(random) < 0.05) factor *= 1 + chance(random);
      if (loaded && chance(random) < 0.7) factor *= 1 + 0.5 * chance(random);
      block.push_back(us * factor);
    }
    taken.push_back(block);
  }
  return taken;
}

std::vector<CsvRow> noisy_run(std::mt19937_64& random) {
  std::vector<CsvRow> run;
  for (int i = 0; i < rows; ++i) {
    CsvRow row;
    row.op = "gemm";
    row.problem = "m=" + std::to_string(i);
    row.origin = "winner";
    row.status = "ok";
    row.blocks_us = noisy(100 * (i + 1), random);
    run.push_back(row);
  }
  return run;
}

void slow_down(CsvRow& row, double factor) {
  for (auto& block : row.blocks_us) {
    for (double& us : block) us *= factor;
  }
}

TEST(BenchCompare, HonestRunsReportNothing) {
  std::mt19937_64 random(1);
  int reports = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto comparison = compare_baselines(noisy_run(random), noisy_run(random), 0.05);
    ASSERT_EQ(comparison.rows.size(), static_cast<std::size_t>(rows));
    if (comparison.regressions() > 0) ++reports;
  }
  EXPECT_LE(reports, 10);
}

TEST(BenchCompare, ATenthSlowerIsFoundInOneRow) {
  std::mt19937_64 random(2);
  int found = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto base = noisy_run(random);
    auto fresh = noisy_run(random);
    slow_down(fresh[7], 1.1);
    const auto comparison = compare_baselines(base, fresh, 0.05);
    if (comparison.regressions() == 1 && comparison.rows.front().fresh.problem == "m=7") ++found;
  }
  EXPECT_GE(found, 90);
}

TEST(BenchCompare, SlowAndFastAreTold) {
  std::mt19937_64 random(3);
  const auto base = noisy_run(random);
  auto fresh = base;
  slow_down(fresh[3], 1.5);
  slow_down(fresh[4], 0.5);
  const auto comparison = compare_baselines(base, fresh, 0.05);
  EXPECT_EQ(comparison.rows[0].finding, Finding::slower);
  EXPECT_NEAR(comparison.rows[0].change.estimate, 1.5, 1e-9);
  EXPECT_EQ(comparison.rows[1].finding, Finding::faster);
  EXPECT_NEAR(comparison.rows[1].change.estimate, 0.5, 1e-9);
  EXPECT_EQ(comparison.regressions(), 1);
}

TEST(BenchCompare, SteadyTimesAreTheSameAndSmallChangesDontCount) {
  const std::vector<double> around{100, 101, 100.5, 102, 100, 101, 101, 100, 100, 100};
  std::vector<double> later;
  for (const double us : around) later.push_back(1.03 * us);
  const Samples base{Blocks(10, around)}, fresh{Blocks(10, later)};
  const auto change = change_of(base, fresh, 0.99);
  EXPECT_EQ(judge(change, 0.05), Finding::same);
  EXPECT_EQ(judge(change, 0.02), Finding::slower);
}

TEST(BenchCompare, FewBlocksTellNothing) {
  const Samples base{Blocks(3, {100, 100, 100})}, fresh{Blocks(3, {200, 200, 200})};
  const auto change = change_of(base, fresh, 0.95);
  EXPECT_EQ(judge(change, 0.05), Finding::unsure);
  EXPECT_EQ(change.low, 0);
  EXPECT_NEAR(change.estimate, 2, 1e-9);
  EXPECT_EQ(judge(change_of({}, {}, 0.95), 0.05), Finding::unsure);
}

// The ranks of Wilcoxon's two samples: 4 and 4 values have 70 orders, so that the extreme pair is
// outside with 1/70 on each side.
TEST(BenchCompare, IntervalsAreExact) {
  Samples base, fresh;
  for (const double us : {1.0, 2.0, 3.0, 4.0}) {
    base.blocks_us.emplace_back(10, us);
    fresh.blocks_us.emplace_back(10, 10 * us);
  }
  EXPECT_GT(change_of(base, fresh, 1 - 2.0 / 70 - 1e-9).low, 0);
  EXPECT_EQ(change_of(base, fresh, 1 - 2.0 / 70 + 1e-6).low, 0);
  EXPECT_DOUBLE_EQ(change_of(base, fresh, 0.97).low, 10.0 / 4);
  EXPECT_DOUBLE_EQ(change_of(base, fresh, 0.97).high, 40.0);
}

// What became slower now and then only moves the estimate no further than the fastest samples.
TEST(BenchCompare, FastestSamplesAndMediansMustAgree) {
  std::vector<double> often(20, 100.0), now_and_then(20, 150.0);
  now_and_then[3] = 100;
  const Samples base{Blocks(10, often)}, fresh{Blocks(10, now_and_then)};
  EXPECT_EQ(change_of(base, fresh, 0.99).estimate, 1);
  EXPECT_NE(judge(change_of(base, fresh, 0.99), 0.05), Finding::slower);
}

// A machine that was slower all the time is no regression: the controls were slower as well.
TEST(BenchCompare, ControlsTellTheMachineFromTheCode) {
  const std::vector<double> us(20, 100.0), later(20, 130.0);
  const std::vector<double> steady(10, 50.0), slower(10, 65.0);
  const Samples base{Blocks(10, us), steady};
  EXPECT_EQ(judge(change_of(base, {Blocks(10, later), steady}, 0.99), 0.05), Finding::slower);
  EXPECT_NE(judge(change_of(base, {Blocks(10, later), slower}, 0.99), 0.05), Finding::slower);
  EXPECT_NE(judge(change_of(base, {Blocks(10, us), slower}, 0.99), 0.05), Finding::faster);
}

TEST(BenchCompare, RowsThatFailAndRowsOfOneSideAreTold) {
  std::mt19937_64 random(4);
  const auto base = noisy_run(random);
  auto fresh = base;
  fresh[5].status = "correctness";
  fresh[6].problem = "m=new";
  fresh[8].origin = "trial";
  const auto comparison = compare_baselines(base, fresh, 0.05);
  EXPECT_TRUE(comparison.rows.front().broke);
  EXPECT_EQ(comparison.regressions(), 1);
  ASSERT_EQ(comparison.only_base.size(), 2U);
  ASSERT_EQ(comparison.only_fresh.size(), 1U);
  EXPECT_EQ(row_name(comparison.only_fresh.front()), "gemm m=new, winner");
}

}  // namespace
}  // namespace greta
