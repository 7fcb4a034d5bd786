// Protects: the static prior, whose coefficients were fitted on NVIDIA GPUs, ranks a space that was
// recorded on an AMD GPU and a recording of GRETA's kernels; regrets and correlations are those of
// their definitions.

#include "tuner/replay/prior_judgement.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "db/json.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/layers.hpp"
#include "tuner/replay/space_recording.hpp"

namespace greta::test::prior_judgement_test {
namespace {

/// Returns the work of the kernel of convolution__mi50.json: a workgroup loads the part of an image
/// of 4096 x 4096 that its tile needs to shared memory, and each thread computes several outputs
/// with a filter of 17 x 17.
KernelWork convolution(const Config& config) {
  constexpr double extent = 4096, filter = 17;
  const double width = config["block_size_x"] * config["tile_size_x"];
  const double height = config["block_size_y"] * config["tile_size_y"];
  const double outputs = width * height;
  const double loaded = (width + filter - 1) * (height + filter - 1) * 4;
  LaunchWork work;
  work.threads = config["block_size_x"] * config["block_size_y"];
  work.workgroups = std::ceil(extent / width) * std::ceil(extent / height);
  work.registers = 24 + 2 * config["tile_size_x"] * config["tile_size_y"];
  work.shared_bytes = loaded;
  work.vector_flops = 2 * outputs * filter * filter;
  work.shared_traffic = loaded + 4 * outputs * filter * filter;
  work.read_bytes = work.ahead_bytes = loaded;
  work.written_bytes = 4 * outputs;
  work.loads = loaded / 4;
  work.barriers = 1;
  work.unique_bytes = 2 * extent * extent * 4;
  return {work};
}

TEST(PriorJudgement, RanksASpaceRecordedOnAnAmdGpu) {
  const auto recording = Recording::load(GRETA_TEST_DATA "/replay/convolution__mi50.json").value();
  EXPECT_FALSE(recording.subject());
  EXPECT_FALSE(recording.prior());
  EXPECT_FALSE(predicted_space(recording));
  UnitRates rates = unit_rates(architecture_info("gfx906").value());
  rates.units = 60;
  std::vector<PredictedRow> rows;
  for (std::uint64_t index = 0; index < recording.space().count(); ++index) {
    const Trial trial = recording.trial(recording.space().choice(index));
    if (!trial.ok()) continue;
    rows.push_back(
        {trial.config, trial.measurement.median_us, cost_terms(convolution(trial.config), rates)});
  }
  const PriorJudgement judgement = judge_prior(rows);
  RecordProperty("rank_correlation", std::to_string(judgement.rank_correlation));
  // The same source takes 1.5 to 198 ms there: what the compiler makes of it is not predicted.
  EXPECT_GT(judgement.rank_correlation, 0.3);
}

TEST(PriorJudgement, IsOfTheOrderOfPredictions) {
  std::vector<PredictedRow> rows(30);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].terms[static_cast<std::size_t>(Term::launches)] = 1 + static_cast<double>(i);
    rows[i].time_us = 100 + static_cast<double>(i);
  }
  EXPECT_DOUBLE_EQ(judge_prior(rows).rank_correlation, 1);
  EXPECT_DOUBLE_EQ(judge_prior(rows).regret[0], 0);
  std::swap(rows[0].time_us, rows[3].time_us);  // the optimum is predicted to be the fourth
  EXPECT_NEAR(judge_prior(rows).regret[0], 0.03, 1e-12);
  EXPECT_DOUBLE_EQ(judge_prior(rows).regret[1], 0);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time_us = 200 - static_cast<double>(i);
  EXPECT_DOUBLE_EQ(judge_prior(rows).rank_correlation, -1);
  for (PredictedRow& row : rows) row.time_us = 5;
  EXPECT_DOUBLE_EQ(judge_prior(rows).rank_correlation, 0);
}

/// A recording of GRETA whose times are what the prior predicts.
std::string recorded_text(const Operation& operation, const Problem& problem,
                          const DeviceInfo& device) {
  const Space space = operation.space(problem, device);
  RecordingHeader header;
  header.version = "test";
  header.device = to_json(device);
  header.problem = problem.key();
  header.alternatives = space.alternatives();
  for (Alternative& alternative : header.alternatives) alternative.constraints.clear();
  const StaticPrior prior(operation, problem, device);
  std::string text = header.line();
  std::set<std::uint64_t> seen;
  std::mt19937_64 random(3);
  const auto add = [&](const Config& config) {
    if (!seen.insert(space.index(config).value()).second) return;
    Trial trial;
    trial.config = config;
    trial.verdict.passed = true;
    trial.measurement.samples_us = {prior.cost(config).value()};
    trial.measurement.median_us = trial.measurement.samples_us.front();
    text += recording_line(trial);
  };
  add(operation.default_config(problem, device));
  for (int i = 0; i < 200; ++i) add(space.sample(random));
  return text;
}

TEST(PriorJudgement, ReadsRecordingsOfItsOwnKernels) {
  const Catalog catalog = Catalog::built_in();
  const Operation& gemm = catalog.at("gemm");
  const DeviceInfo device = architecture_info("gfx942").value();
  const Problem problem = typical_problem(gemm, gemm.dtypes.front());
  const auto file = std::filesystem::path(testing::TempDir()) / "predicted.jsonl";
  std::ofstream(file) << recorded_text(gemm, problem, device);
  const auto recording = Recording::load(file).value();
  ASSERT_TRUE(recording.subject());
  EXPECT_EQ(recording.subject()->problem.key(), problem.key());
  const PredictedSpace space = predicted_space(recording).value();
  EXPECT_EQ(space.rows.size(), recording.space().count());
  EXPECT_EQ(space.problem, problem);
  EXPECT_EQ(space.standard, gemm.default_config(problem, device));
  const PriorJudgement judgement = judge_prior(space.rows, space.standard);
  EXPECT_NEAR(judgement.rank_correlation, 1, 1e-9);
  EXPECT_EQ(judgement.regret[0], 0);
  EXPECT_TRUE(judgement.default_regret);
  // Parameters and values in another order describe the same configurations.
  const Recording shuffled = recording.shuffled(9);
  const auto prior = shuffled.prior();
  for (std::uint64_t index = 0; index < shuffled.space().count(); index += 17) {
    const Choice choice = shuffled.space().choice(index);
    EXPECT_NEAR(prior(choice), shuffled.trial(choice).measurement.median_us, 1e-6 * prior(choice));
  }
}

}  // namespace
}  // namespace greta::test::prior_judgement_test
