// Protects: a model's tuner says what is wrong as data, before it writes anything.
#include "tuner/model/model_tuner.hpp"

#include <gtest/gtest.h>

#include "kernels/chains/chains.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {
namespace {

class ModelTunerTest : public ::testing::Test {
 protected:
  ModelTunerTest() {
    options_.tuner.devices = {"hip-host:0"};
    options_.tuner.database = folder_ / "tuned.db";
    options_.tuner.cache_directory = folder_ / "cache";
    options_.config = named_llama("llama-2-7b").value();
    options_.load = {8, 4, 1};
  }

  /// Returns the field that a tuner with these options rejects.
  std::string bad_field_of(const ModelTunerOptions& options) {
    const auto tuner = ModelTuner::open(options, observer_, model_observer_, stop_);
    EXPECT_FALSE(tuner);
    EXPECT_FALSE(std::filesystem::exists(options.tuner.database));
    return tuner || !tuner.failure().field ? "none" : tuner.failure().field->field;
  }

  TemporaryFolder folder_;
  ModelTunerOptions options_;
  TunerObserver observer_;
  ModelObserver model_observer_;
  std::atomic<bool> stop_ = false;
};

TEST_F(ModelTunerTest, ABudgetIsATime) {
  options_.tuner.budget = Budget::trials_of(10);
  EXPECT_EQ(bad_field_of(options_), "budget");
}

TEST_F(ModelTunerTest, OneDeviceIsTuned) {
  options_.tuner.devices = {"hip-host:0", "hip-host:1"};
  EXPECT_EQ(bad_field_of(options_), "device");
  options_.tuner.devices = {"no such device"};
  EXPECT_EQ(bad_field_of(options_), "device");
}

TEST_F(ModelTunerTest, AnApplicationsDatabaseExists) {
  options_.tuner.application = {folder_ / "nothing.db"};
  EXPECT_EQ(bad_field_of(options_), "shipped");
}

/// Two alternatives may be faster one after the other, of which the database has the last one.
TEST(ModelChains, HaveOneChoice) {
  const auto change = [](std::int64_t rows, const char* alternative) {
    ChainChange one;
    one.chain = kernels::gate_up_chain(DType::f16, rows, 64, 32);
    one.alternative = alternative;
    one.kept = true;
    return one;
  };
  std::vector<ChainChange> all{change(1, "gated"), change(16, "gated"), change(1, "fused"),
                               change(1, "normed")};
  all[3].kept = false;
  replace_others(all, all[2]);
  EXPECT_TRUE(all[0].replaced && !all[0].kept);
  for (const std::size_t other : {1U, 2U}) {
    EXPECT_TRUE(all[other].kept && !all[other].replaced) << other;
  }
  EXPECT_FALSE(all[3].kept || all[3].replaced);
}

// Biased products of quantised weights have no gates, so `gated` would run as `parts` does.
TEST(ModelChains, AlternativesThatRunAsOthersAreNotTried) {
  ChosenChain chosen{kernels::gate_up_chain(DType::f16, 1, 64, 32), {}};
  chosen.answer.config.variant = "parts";
  EXPECT_EQ(other_alternatives(chosen, {}), (std::vector<std::string>{"fused", "gated", "normed"}));
  chosen.instead = {{"fused", "normed"}, {"gated", "parts"}};
  EXPECT_EQ(other_alternatives(chosen, {}), std::vector<std::string>{"normed"});
}

TEST_F(ModelTunerTest, TheStrategyIsKnown) {
  options_.tuner.strategy = "luck";
  EXPECT_EQ(bad_field_of(options_), "strategy");
}

}  // namespace
}  // namespace greta::test
