// Protects: recordings are read completely, and local search finds better configurations than
// random sampling on a recorded space.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/layers.hpp"
#include "tuner/replay/replay.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::test::search_replay_test {
namespace {

const std::string folder = std::string(GRETA_TEST_DATA) + "/replay/";

Recording convolution(std::uint64_t shuffle_seed) {
  return Recording::load(folder + "convolution__mi50.json", shuffle_seed).value();
}

TEST(Recording, IsReadWhole) {
  const Recording recording = convolution(0);
  EXPECT_EQ(recording.space().count(), 2442U);
  EXPECT_EQ(recording.space().cartesian_size(), 5120U);
  EXPECT_NEAR(recording.optimum_us(), 1486.29, 0.01);
  const auto config = recording.space().parse(
      "convolution_kernel block_size_x=16 block_size_y=1 tile_size_x=1 tile_size_y=1 read_only=0 "
      "use_padding=0");
  const Trial trial = recording.trial(config.value());
  EXPECT_TRUE(trial.ok());
  EXPECT_NEAR(trial.measurement.median_us, 10861.86, 0.01);
}

TEST(Recording, ShufflingChangesTheOrderOnly) {
  const Recording plain = convolution(0);
  const Recording shuffled = convolution(1);
  const auto values = [](const Recording& recording) {
    return recording.space().alternatives()[0].parameters[0].values;
  };
  EXPECT_NE(values(shuffled), values(plain));
  EXPECT_EQ(shuffled.space().count(), plain.space().count());
  for (std::uint64_t i = 0; i < plain.space().count(); ++i) {
    EXPECT_TRUE(shuffled.space().valid(plain.space().at(i)));
  }
}

TEST(Recording, FailedConfigurationsFail) {
  const auto path = std::filesystem::path(testing::TempDir()) / "greta_recording_failed.json";
  std::ofstream(path) << R"({"kernel_name": "k", "tune_params_keys": ["A"],
                             "tune_params": {"A": [1, 2, 3]},
                             "cache": {"1": {"time": "CompilationFailedConfig"},
                                       "3": {"time": 0.5}}})";
  const Recording recording = Recording::load(path).value();
  std::filesystem::remove(path);
  EXPECT_EQ(recording.space().count(), 2U);
  EXPECT_EQ(recording.optimum_us(), 500);
  EXPECT_FALSE(recording.trial({"k", {{"A", 1}}}).ok());
  EXPECT_TRUE(recording.trial({"k", {{"A", 3}}}).ok());
}

TEST(Recording, UnreadableFilesFailInOneLine) {
  for (const std::string& file : {folder + "absent.json", folder + "LICENSE"}) {
    const auto loaded = Recording::load(file);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.failure().message.rfind("recording " + file + " can't be read: ", 0), 0U);
  }
}

/// Returns the mean of optimum / best found after each number of trials, over 30 seeds with
/// shuffled values.
std::vector<double> quality(std::string_view name, const std::vector<std::size_t>& budgets) {
  constexpr std::uint64_t seeds = 30;
  std::vector<double> mean(budgets.size());
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Recording recording = convolution(seed);
    const auto strategy = find_strategy(name)->create({&recording.space(), {}, seed});
    double best = std::numeric_limits<double>::infinity();
    std::size_t trials = 0;
    for (std::size_t i = 0; i < budgets.size(); ++i) {
      for (; trials < budgets[i]; ++trials) {
        const Choice choice = *strategy->ask();
        const Trial trial = recording.trial(recording.space().config(choice));
        if (trial.ok()) best = std::min(best, trial.measurement.median_us);
        strategy->tell(choice, trial);
      }
      mean[i] += recording.optimum_us() / best / static_cast<double>(seeds);
    }
  }
  return mean;
}

TEST(LocalOnARecording, BeatsRandomSampling) {
  const std::vector<std::size_t> budgets{20, 50, 100};
  const auto local = quality("local", budgets);
  const auto random = quality("random", budgets);
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    RecordProperty("local_" + std::to_string(budgets[i]), std::to_string(local[i]));
    RecordProperty("random_" + std::to_string(budgets[i]), std::to_string(random[i]));
  }
  // From 50 trials on, local search reduces the distance to the optimum by a third. The seeds are
  // fixed, and the standard error of each mean is about 0.006 there.
  EXPECT_GT(local[0], random[0]);
  EXPECT_GT(local[1], random[1] + 0.02);
  EXPECT_GT(local[2], random[2] + 0.015);
  EXPECT_GT(local[2], 0.945);
}

}  // namespace
}  // namespace greta::test::search_replay_test
