// Protects: a model's tuner says what is wrong as data, before it writes anything.
#include "tuner/model/model_tuner.hpp"

#include <gtest/gtest.h>

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

TEST_F(ModelTunerTest, TheStrategyIsKnown) {
  options_.tuner.strategy = "luck";
  EXPECT_EQ(bad_field_of(options_), "strategy");
}

}  // namespace
}  // namespace greta::test
