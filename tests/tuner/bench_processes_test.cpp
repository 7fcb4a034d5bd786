// Protects: the comparison of short kernels on a GPU whose blocks come from separate processes. The
// simulated times vary between processes as those of an NVIDIA H200
// (results/notes/benchmark_comparison.md).

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/layers.hpp"
#include "tuner/bench/compare.hpp"

namespace greta::test::bench_processes_test {
namespace {

constexpr int rows = 150;
constexpr std::size_t planned = 10;  // blocks, each of one process, as in the preset standard
constexpr std::size_t most = 20;
constexpr int samples = 20;

/// How the times of launches vary between processes, in µs.
struct Variation {
  double least_us;    ///< time of the shortest kernel
  double slow_share;  ///< share of the processes in which launches take longer
  double longer_us;   ///< by this time, for all kernels
  double own_share;   ///< the same for each kernel by itself
  double own_longer_us;
  double scatter_us;  ///< standard deviation of what else differs for each kernel
};
constexpr Variation measured{4.2, 0.3, 0.22, 0, 0, 0.09};       // through HIP
constexpr Variation each_by_itself{4.2, 0, 0, 0.3, 0.3, 0.08};  // as one kernel of the H200
constexpr Variation vulkan{3, 0, 0, 0, 0, 0.06};

class Machine {
 public:
  Machine(Variation variation, unsigned seed) : variation_(variation), random_(seed) {}

  /// Times 150 kernels of up to 16 µs in processes, in more of them if they are not settled.
  std::vector<MeasuredResult> run() {
    std::vector<MeasuredResult> results(rows);
    std::vector<double> common_us;
    for (std::size_t i = 0; i < most; ++i)
      common_us.push_back(longer(variation_.slow_share, variation_.longer_us));
    for (int i = 0; i < rows; ++i) {
      MeasuredResult& result = results[static_cast<std::size_t>(i)];
      result.subject.problem.op = "add";
      result.subject.problem.dims = {{"rows", i}};
      result.subject.origin = ResultOrigin::winner;
      const double least = variation_.least_us;
      const double us = least * std::pow(16 / least, i / (rows - 1.0));
      Samples& taken = result.samples;
      while (taken.blocks_us.size() < most) {
        if (taken.blocks_us.size() >= planned && settled_in_processes(taken)) break;
        taken.blocks_us.push_back(block(us + common_us[taken.blocks_us.size()]));
        taken.control_us.push_back(116 + 0.05 * normal_(random_));
      }
      result.processes = taken.blocks_us.size();
    }
    return results;
  }

 private:
  double longer(double share, double us) { return chance_(random_) < share ? us : 0; }

  std::vector<double> block(double us) {
    us += longer(variation_.own_share, variation_.own_longer_us);
    us += variation_.scatter_us * normal_(random_);
    std::vector<double> taken;
    for (int i = 0; i < samples; ++i) taken.push_back(us * std::exp(0.02 * normal_(random_)));
    return taken;
  }

  Variation variation_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0, 1};
  std::uniform_real_distribution<double> chance_{0, 1};
};

struct Outcome {
  int found = 0;    ///< rows reported as slower
  int reports = 0;  ///< tables in which an honest row is reported
};

/// Compares pairs of runs as they are, and after every row was made slower by this factor. Rows are
/// judged one by one, so this finds what a slower row alone would.
Outcome compared(Variation variation, double factor, int tables) {
  Machine machine(variation, 1);
  Outcome outcome;
  for (int table = 0; table < tables; ++table) {
    const auto base = machine.run();
    auto fresh = machine.run();
    for (const auto& row : compare_baselines(base, fresh, 0.05).changes) {
      if (row.finding != Finding::slower && row.finding != Finding::faster) continue;
      ++outcome.reports;
      break;
    }
    for (auto& result : fresh) {
      for (auto& block : result.samples.blocks_us) {
        for (double& us : block) us *= factor;
      }
    }
    outcome.found += compare_baselines(base, fresh, 0.05).regressions();
  }
  return outcome;
}

constexpr int tables = 20;

TEST(BenchProcesses, ATenthSlowerIsFoundInNineOfTenRows) {
  for (const Variation& variation : {measured, each_by_itself, vulkan}) {
    const Outcome outcome = compared(variation, 1.1, tables);
    EXPECT_GE(outcome.found, 0.95 * rows * tables);
    EXPECT_LE(outcome.reports, 0.05 * tables);
  }
}

// The error rate holds for the whole table, even if processes differ far more than measured.
TEST(BenchProcesses, HonestRunsReportNothing) {
  for (const Variation& variation :
       {Variation{4.2, 0.5, 0.6, 0, 0, 0.2}, Variation{4.2, 0, 0, 0.2, 1, 0.3}}) {
    EXPECT_LE(compared(variation, 1, tables).reports, 0.05 * tables);
  }
}

MeasuredResult row_of(std::size_t processes, std::size_t slow, double factor) {
  MeasuredResult row;
  row.subject.problem.op = "add";
  row.subject.origin = ResultOrigin::winner;
  row.processes = processes;
  for (std::size_t i = 0; i < std::max<std::size_t>(processes, 10); ++i) {
    const double us = factor * (i < slow ? 4.5 : 4.2) + 0.001 * static_cast<double>(i);
    row.samples.blocks_us.emplace_back(20, us);
  }
  return row;
}

Finding finding_of(const MeasuredResult& base, const MeasuredResult& fresh) {
  return compare_baselines({base}, {fresh}, 0.05).changes[0].finding;
}

// A change of less than 0.4 µs counts if samples of enough processes show it.
TEST(BenchProcesses, EnoughProcessesNeedNoAllowance) {
  EXPECT_EQ(finding_of(row_of(10, 0, 1), row_of(10, 0, 1.08)), Finding::slower);
  EXPECT_EQ(finding_of(row_of(10, 0, 1.08), row_of(10, 0, 1)), Finding::faster);
  EXPECT_EQ(finding_of(row_of(0, 0, 1), row_of(0, 0, 1.08)), Finding::unsure);
}

// Baselines of one process can be compared with newer ones, with the allowance for launches.
TEST(BenchProcesses, OlderBaselinesAreOfOneProcess) {
  EXPECT_EQ(finding_of(row_of(0, 0, 1), row_of(10, 0, 1.08)), Finding::unsure);
  EXPECT_EQ(finding_of(row_of(10, 0, 1), row_of(0, 0, 1.08)), Finding::unsure);
  EXPECT_EQ(finding_of(row_of(0, 0, 1), row_of(10, 0, 1.3)), Finding::slower);
  EXPECT_EQ(finding_of(row_of(0, 0, 1), row_of(10, 0, 1)), Finding::same);
}

// The fastest samples of twelve processes would be the same here.
TEST(BenchProcesses, AllProcessesCount) {
  MeasuredResult base = row_of(24, 0, 1), fresh = row_of(24, 12, 1.09);
  EXPECT_GT(change_of(base, fresh, 0.95).estimate, 1.09);
  for (auto* row : {&base, &fresh}) {
    for (auto& block : row->samples.blocks_us) block.front() = 1;  // one fast sample each
  }
  EXPECT_GT(change_of(base, fresh, 0.95).estimate, 1.09);
}

TEST(BenchProcesses, AFasterCardIsNotFasterCode) {
  MeasuredResult base = row_of(10, 0, 1), fresh = row_of(10, 0, 0.9);
  base.samples.control_us.assign(10, 116);
  fresh.samples.control_us.assign(10, 104.4);
  EXPECT_EQ(change_of(base, fresh, 0.95).estimate, 1);
  EXPECT_NE(finding_of(base, fresh), Finding::faster);
}

TEST(BenchProcesses, SettledIsAMedianWithinTwoPercent) {
  EXPECT_TRUE(settled_in_processes(row_of(10, 0, 1).samples));
  EXPECT_FALSE(settled_in_processes(row_of(10, 5, 1).samples));
  MeasuredResult few = row_of(10, 0, 1);
  few.samples.blocks_us.resize(5);
  EXPECT_FALSE(settled_in_processes(few.samples));
}

}  // namespace
}  // namespace greta::test::bench_processes_test
