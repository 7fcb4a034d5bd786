// Protects: the comparison of baselines. Noise is not reported as a regression, and slowdowns are
// detected despite noise.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/layers.hpp"
#include "tuner/bench/compare.hpp"

namespace greta::test::bench_compare_test {
namespace {

using Blocks = std::vector<std::vector<double>>;

constexpr int rows = 20;
constexpr int blocks = 24;
constexpr int samples = 5;

/// A run on a shared machine: some blocks are taken while other programs work, which slows most of
/// their samples by up to a half. In addition, samples have a heavy-tailed noise.
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

MeasuredResult result_of(const char* op, ResultOrigin origin) {
  MeasuredResult result;
  result.subject.problem.op = op;
  result.subject.typed = false;
  result.subject.origin = origin;
  return result;
}

std::vector<MeasuredResult> noisy_run(std::mt19937_64& random) {
  std::vector<MeasuredResult> run;
  for (int i = 0; i < rows; ++i) {
    run.push_back(result_of("gemm", ResultOrigin::winner));
    run.back().subject.problem.dims = {{"m", i}};
    run.back().samples.blocks_us = noisy(100 * (i + 1), random);
  }
  return run;
}

void slow_down(MeasuredResult& result, double factor) {
  for (auto& block : result.samples.blocks_us) {
    for (double& us : block) us *= factor;
  }
}

TEST(BenchCompare, ChosenConfigurationsAreComparedWithThemselves) {
  std::mt19937_64 random(1);
  std::vector<MeasuredResult> base, fresh;
  for (const int threads : {64, 128}) {
    MeasuredResult result = result_of("gemm", ResultOrigin::chosen);
    result.subject.config = Config{"naive", {{"THREADS", threads}}};
    result.samples.blocks_us = noisy(threads, random);
    base.push_back(result);
    result.samples.blocks_us = noisy(threads, random);
    fresh.push_back(result);
  }
  const auto comparison = compare_baselines(base, fresh, 0.05);
  EXPECT_EQ(comparison.changes.size(), 2U);
  EXPECT_EQ(comparison.regressions(), 0);
  EXPECT_TRUE(subject_text(base[0].subject).ends_with("chosen naive THREADS=64"));
  base.pop_back();
  EXPECT_EQ(compare_baselines(base, fresh, 0.05).only_fresh.size(), 1U);
}

TEST(BenchCompare, HonestRunsReportNothing) {
  std::mt19937_64 random(1);
  int reports = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto comparison = compare_baselines(noisy_run(random), noisy_run(random), 0.05);
    ASSERT_EQ(comparison.changes.size(), static_cast<std::size_t>(rows));
    if (comparison.regressions() > 0) ++reports;
  }
  EXPECT_LE(reports, 10);
}

/// Blocks that are slower or faster as a whole, each with a control.
MeasuredResult scattered_row(int count, double scatter, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0, 1);
  MeasuredResult row = result_of("gemm", ResultOrigin::winner);
  for (int b = 0; b < count; ++b) {
    const double block = 100 * std::exp(scatter * normal(random));
    row.samples.blocks_us.push_back({block, block * std::exp(0.01 * std::abs(normal(random)))});
    row.samples.control_us.push_back(50 * std::exp(0.01 * normal(random)));
  }
  return row;
}

// Noisy benchmarks have more blocks, and the minimum of more samples is lower.
TEST(BenchCompare, RunsWithMoreSamplesAreNotFaster) {
  std::mt19937_64 random(7);
  int reports = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const double scatter = attempt % 2 == 0 ? 0.08 : 0.15;
    const auto few = scattered_row(36, scatter, random), many = scattered_row(144, scatter, random);
    const auto change = compare_baselines({few}, {many}, 0.05).changes[0];
    reports += change.finding == Finding::faster || change.finding == Finding::slower ? 1 : 0;
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
    if (comparison.regressions() == 1 &&
        comparison.changes.front().fresh.subject.problem.dim("m") == 7)
      ++found;
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
  EXPECT_EQ(comparison.changes[0].finding, Finding::slower);
  EXPECT_NEAR(comparison.changes[0].change.estimate, 1.5, 1e-9);
  EXPECT_EQ(comparison.changes[1].finding, Finding::faster);
  EXPECT_NEAR(comparison.changes[1].change.estimate, 0.5, 1e-9);
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
  EXPECT_EQ(judge(change_of(Samples{}, Samples{}, 0.95), 0.05), Finding::unsure);
}

// Wilcoxon's rank sums of 4 and 4 values have 70 orders, so the extreme pair is exceeded with
// probability 1/70 on each side.
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

// Occasional slowdowns don't change the fastest samples.
TEST(BenchCompare, TheFastestSamplesMustHaveChanged) {
  std::vector<double> often(20, 100.0), now_and_then(20, 150.0);
  now_and_then[3] = 100;
  const Samples base{Blocks(10, often)}, fresh{Blocks(10, now_and_then)};
  EXPECT_EQ(change_of(base, fresh, 0.99).estimate, 1);
  EXPECT_NE(judge(change_of(base, fresh, 0.99), 0.05), Finding::slower);
}

// A machine that is slower as a whole is not a regression, because the controls are slower as well.
TEST(BenchCompare, ControlsTellTheMachineFromTheCode) {
  const std::vector<double> us(20, 100.0), later(20, 130.0);
  const std::vector<double> steady(10, 50.0), slower(10, 65.0);
  const Samples base{Blocks(10, us), steady};
  EXPECT_EQ(judge(change_of(base, {Blocks(10, later), steady}, 0.99), 0.05), Finding::slower);
  EXPECT_NE(judge(change_of(base, {Blocks(10, later), slower}, 0.99), 0.05), Finding::slower);
  EXPECT_NE(judge(change_of(base, {Blocks(10, us), slower}, 0.99), 0.05), Finding::faster);
}

TEST(BenchCompare, ControlsOfOneSideTellNothing) {
  const std::vector<double> us(20, 100.0), later(20, 150.0);
  const Samples base{Blocks(10, us)}, fresh{Blocks(10, later), std::vector<double>(10, 2.0)};
  EXPECT_EQ(judge(change_of(base, fresh, 0.99), 0.05), Finding::slower);
  Samples before{Blocks(10, us)}, after{Blocks(10, us)};
  before.cpu_us = after.cpu_us = Blocks(10, us);
  EXPECT_TRUE(before.cpu_control_us.empty());
  EXPECT_FALSE(fastest_processor_change_of(before, after, 0.99));
  before.cpu_control_us = after.cpu_control_us = std::vector<double>(10, 50.0);
  EXPECT_TRUE(fastest_processor_change_of(before, after, 0.99));
}

// A ratio of 1.25 for machine and runtime benchmarks, and any change of a few nanoseconds, may come
// from the process, unless both runs have samples from enough processes.
TEST(BenchCompare, AnotherProcessExplainsAQuarterOfCalls) {
  const auto finding = [](double us, double factor, std::size_t processes) {
    MeasuredResult base = result_of("dispatch", ResultOrigin::measured);
    base.samples.blocks_us = Blocks(10, std::vector<double>(20, us));
    base.processes = processes;
    MeasuredResult fresh = base;
    slow_down(fresh, factor);
    return compare_baselines({base}, {fresh}, 0.05).changes[0].finding;
  };
  EXPECT_EQ(finding(50, 1, 0), Finding::same);
  EXPECT_EQ(finding(50, 1.2, 0), Finding::unsure);
  EXPECT_EQ(finding(50, 0.8, 0), Finding::unsure);
  EXPECT_EQ(finding(50, 1.2, 5), Finding::unsure);
  EXPECT_EQ(finding(50, 1.5, 0), Finding::slower);
  EXPECT_EQ(finding(50, 0.5, 0), Finding::faster);
  EXPECT_EQ(finding(50, 1.1, 6), Finding::slower);
  EXPECT_EQ(finding(0.01, 1.5, 0), Finding::same);
  EXPECT_EQ(finding(0.05, 1.1, 6), Finding::slower);
  EXPECT_EQ(finding(0.01, 1.1, 6), Finding::same);
}

// A launch of a few µs takes 0.3 µs longer in some processes.
TEST(BenchCompare, AnotherProcessExplainsAPartOfALaunch) {
  const auto finding = [](double us, double longer_us) {
    MeasuredResult base = result_of("add", ResultOrigin::untuned);
    base.samples.blocks_us = Blocks(10, std::vector<double>(20, us));
    MeasuredResult fresh = base;
    slow_down(fresh, 1 + longer_us / us);
    return compare_baselines({base}, {fresh}, 0.05).changes[0].finding;
  };
  EXPECT_EQ(finding(4.2, 0.3), Finding::unsure);
  EXPECT_EQ(finding(4.2, -0.3), Finding::unsure);
  EXPECT_EQ(finding(4.2, 0.7), Finding::slower);
  EXPECT_EQ(finding(4.2, -0.7), Finding::faster);
  EXPECT_EQ(finding(10, 1), Finding::slower);
}

// Calls are measured differently in separate processes, for example on a single core.
TEST(BenchCompare, ProcessesOfOneSideTellNothing) {
  MeasuredResult before = result_of("dispatch", ResultOrigin::measured);
  before.samples.blocks_us = Blocks(10, std::vector<double>(20, 50.0));
  MeasuredResult after = before;
  after.processes = 10;
  slow_down(after, 0.02);
  EXPECT_EQ(compare_baselines({before}, {after}, 0.05).changes[0].finding, Finding::unsure);
  EXPECT_EQ(compare_baselines({after}, {before}, 0.05).changes[0].finding, Finding::unsure);
}

// Exports to the same file add up their numbers of processes, if these are known.
TEST(BenchCompare, ProcessesOfOneFileAddUp) {
  MeasuredResult row = result_of("dispatch", ResultOrigin::measured);
  row.samples.blocks_us = Blocks(3, std::vector<double>(20, 50.0));
  const auto finding = [&](std::size_t first, std::size_t second) {
    std::vector<MeasuredResult> base(2, row);
    base[0].processes = first;
    base[1].processes = second;
    auto fresh = base;
    for (auto& each : fresh) slow_down(each, 1.1);
    return compare_baselines(base, fresh, 0.05).changes[0].finding;
  };
  EXPECT_EQ(finding(3, 3), Finding::slower);
  EXPECT_EQ(finding(3, 0), Finding::unsure);
  EXPECT_EQ(finding(0, 0), Finding::unsure);
}

/// A run on a shared CPU: the waiting time of samples varies from block to block. The CPU time of
/// the threads varies little, and changes with the machine somewhat more than that of the control.
MeasuredResult busy_row(double factor, double machine, std::mt19937_64& random) {
  std::normal_distribution<double> scatter(0, 1);
  MeasuredResult row = result_of("gemm", ResultOrigin::winner);
  for (int b = 0; b < 90; ++b) {
    const double waits = std::exp(0.5 * scatter(random));
    std::vector<double> us, cpu;
    for (int s = 0; s < samples; ++s) {
      cpu.push_back(700 * factor * std::pow(machine, 1.4) * std::exp(0.06 * scatter(random)));
      us.push_back(cpu.back() * (1 + waits));
    }
    row.samples.blocks_us.push_back(us);
    row.samples.control_us.push_back(300 * std::pow(machine, 1.4) * (1 + waits));
    row.samples.cpu_us.push_back(cpu);
    row.samples.cpu_control_us.push_back(500 * machine * std::exp(0.04 * scatter(random)));
  }
  return row;
}

// If waiting hides changes of the wall times, the ratios of CPU times to those of the controls show
// them.
TEST(BenchCompare, ProcessorTimesTellWhatWaitingHides) {
  std::mt19937_64 random(5);
  int found = 0, by_processor = 0, reports = 0;
  for (int attempt = 0; attempt < 40; ++attempt) {
    const auto base = busy_row(1, 1, random);
    for (const double machine : {0.85, 1.0, 1.15}) {
      reports += compare_baselines({base}, {busy_row(1, machine, random)}, 0.05).regressions();
    }
    const auto slower = compare_baselines({base}, {busy_row(1.1, 1, random)}, 0.05);
    found += slower.regressions();
    by_processor += slower.changes[0].by_processor ? 1 : 0;
  }
  EXPECT_LE(reports, 4);
  EXPECT_GE(found, 36);
  EXPECT_GE(by_processor, 20);
  // Files without CPU times are compared by wall times alone.
  auto older = busy_row(1, 1, random);
  older.samples.cpu_us.clear();
  const auto mixed = compare_baselines({older}, {busy_row(1.1, 1, random)}, 0.05);
  EXPECT_FALSE(mixed.changes[0].by_processor);
}

TEST(BenchCompare, SettledIsWhatHasANarrowInterval) {
  const std::vector<double> steady{100, 101, 100.5, 102, 100};
  EXPECT_TRUE(settled({Blocks(10, steady)}));
  EXPECT_FALSE(settled({Blocks(5, steady)}));  // too few
  Blocks wild;
  for (int i = 0; i < 10; ++i) wild.push_back({100.0 + 10 * i, 200});
  EXPECT_FALSE(settled({wild}));
  Samples both{wild};
  both.cpu_us = Blocks(10, steady);
  both.cpu_control_us.assign(10, 50);
  EXPECT_TRUE(settled(both));
}

TEST(BenchCompare, WhatWasInterruptedDidNotFail) {
  std::mt19937_64 random(6);
  const auto base = noisy_run(random);
  auto fresh = base;
  fresh[2].failure = Failure{Status::unavailable, "interrupted", {}};
  EXPECT_EQ(compare_baselines(base, fresh, 0.05).regressions(), 0);
  fresh[2].samples.blocks_us.clear();
  EXPECT_EQ(compare_baselines(base, fresh, 0.05).regressions(), 1);
}

TEST(BenchCompare, RowsThatFailAndRowsOfOneSideAreTold) {
  std::mt19937_64 random(4);
  const auto base = noisy_run(random);
  auto fresh = base;
  fresh[5].failure = Failure{Status::correctness, "wrong", {}};
  fresh[6].subject.problem.dims = {{"m", 1000}};
  fresh[8].subject.origin = ResultOrigin::trial;
  const auto comparison = compare_baselines(base, fresh, 0.05);
  EXPECT_TRUE(comparison.changes.front().broke);
  EXPECT_EQ(comparison.regressions(), 1);
  ASSERT_EQ(comparison.only_base.size(), 2U);
  ASSERT_EQ(comparison.only_fresh.size(), 1U);
  EXPECT_EQ(subject_text(comparison.only_fresh.front().subject), "gemm m=1000, winner");
}

}  // namespace
}  // namespace greta::test::bench_compare_test
