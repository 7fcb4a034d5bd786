// Protects: recording a space loses nothing when it is interrupted, goes on with what is missing,
// and a replay of the recording gives what was measured.

#include "tuner/replay/space_recorder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/device/system/input_file.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/replay/gzip.hpp"
#include "tuner/replay/replay_evaluator.hpp"

namespace greta::test::space_recorder_test {
namespace {

/// 12 configurations, of which three failed.
constexpr auto cache = R"({"device_name": "GPU", "kernel_name": "k", "tune_params_keys": ["A", "B"],
 "tune_params": {"A": [1, 2, 3, 4], "B": [1, 2, 3]}, "cache": {
 "1,1": {"time": 1}, "1,2": {"time": 2}, "1,3": {"time": 3}, "2,1": {"time": 4},
 "2,2": {"time": "CompilationFailedConfig"}, "2,3": {"time": 6}, "3,1": {"time": "InvalidConfig"},
 "3,2": {"time": 8}, "3,3": {"time": 0.9}, "4,1": {"time": 10}, "4,2": {"time": "Runtime"},
 "4,3": {"time": 12}}})";

class SpaceRecorder : public testing::Test {
 protected:
  SpaceRecorder() : evaluator_(source()), pool_({&evaluator_}) {}

  Recording source() const {
    std::ofstream(folder_.path() / "source.json") << cache;
    return Recording::load(folder_.path() / "source.json").value();
  }

  /// Records into a file; stops after `most` trials of this call.
  Result<RecordProgress> record(const std::string& file,
                                std::optional<std::uint64_t> points = std::nullopt, int most = 100,
                                std::uint64_t seed = 1) {
    RecordOptions options;
    options.file = folder_ / file;
    options.points = points;
    options.seed = seed;
    std::atomic<bool> stop = false;
    trials_ = 0;
    return record_space(
        pool_, evaluator_.problem(), evaluator_.recording().space(), options,
        [&](const RecordProgress&) { stop = ++trials_ >= most; }, stop);
  }

  std::string content(const std::string& file) const {
    return read_file(folder_ / file, 1 << 20).value();
  }

  void expect_everything(const std::string& file) const {
    const Recording read = Recording::load(folder_ / file).value();
    const Recording& measured = evaluator_.recording();
    ASSERT_EQ(read.space().count(), 12U);
    EXPECT_EQ(read.device_name(), "GPU");
    for (std::uint64_t i = 0; i < 12; ++i) {
      const Config config = measured.space().at(i);
      EXPECT_EQ(read.trial(config).failure, measured.trial(config).failure) << config.text();
      EXPECT_EQ(read.trial(config).measurement.median_us,
                measured.trial(config).measurement.median_us);
    }
  }

  TemporaryFolder folder_;
  ReplayEvaluator evaluator_;
  EvaluatorPool pool_;
  int trials_ = 0;
};

TEST_F(SpaceRecorder, RecordsASpaceThatReplayReads) {
  for (const std::string file : {"whole.jsonl", "whole.json.gz"}) {
    const auto progress = record(file).value();
    EXPECT_EQ(progress.recorded, 12U);
    EXPECT_EQ(progress.failed, 3U);
    EXPECT_TRUE(progress.complete());
    expect_everything(file);
  }
  EXPECT_EQ(folder_.listing(), "source.json whole.json.gz whole.jsonl");
}

TEST_F(SpaceRecorder, GoesOnWhereItWasInterrupted) {
  for (const std::string file : {"parts.jsonl", "parts.gz"}) {
    std::uint64_t recorded = 0;
    for (int round = 0; round < 4; ++round) {
      const auto progress = record(file, std::nullopt, 3).value();
      EXPECT_EQ(trials_, 3);
      EXPECT_EQ(progress.recorded, recorded += 3);
    }
    expect_everything(file);
    record(file).value();
    EXPECT_EQ(trials_, 0) << "everything was recorded";
  }
}

TEST_F(SpaceRecorder, ALineThatAKillCutIsMeasuredAgain) {
  record("cut.jsonl", std::nullopt, 5).value();
  std::filesystem::resize_file(folder_ / "cut.jsonl",
                               std::filesystem::file_size(folder_ / "cut.jsonl") - 4);
  EXPECT_EQ(record("cut.jsonl").value().recorded, 12U);
  EXPECT_EQ(trials_, 8);
  expect_everything("cut.jsonl");
}

TEST_F(SpaceRecorder, PointsAreRandomAndMoreAreAdded) {
  EXPECT_EQ(record("points.gz", 4).value().recorded, 4U);
  EXPECT_EQ(Recording::load(folder_ / "points.gz").value().space().count(), 4U);
  EXPECT_EQ(record("points.gz", 9).value().recorded, 9U);
  EXPECT_EQ(trials_, 5);
  EXPECT_EQ(record("points.gz", 2).value().wanted, 9U);
  EXPECT_EQ(trials_, 0);
  EXPECT_EQ(record("points.gz").value().recorded, 12U);
  expect_everything("points.gz");
}

TEST_F(SpaceRecorder, RefusesFilesOfSomethingElse) {
  record("one.jsonl", 3).value();
  const auto refused = [&](const std::string& file, std::uint64_t seed, const std::string& why) {
    const auto result = record(file, std::nullopt, 100, seed);
    ASSERT_FALSE(result) << file;
    EXPECT_EQ(result.failure().field->field, "record");
    EXPECT_NE(result.failure().message.find(why), std::string::npos) << result.failure().message;
  };
  refused("one.jsonl", 2, "another seed");
  refused("source.json", 1, "not a recording of GRETA");
  std::ofstream(folder_.path() / "damaged.gz") << "\x1f\x8b damaged";
  refused("damaged.gz", 1, "compressed");
  const std::string foreign = R"({"my":"precious data"})";
  for (const auto& [file, text] :
       {std::pair("foreign.json", foreign), {"foreign.json.gz", compress(foreign)}}) {
    std::ofstream(folder_.path() / file, std::ios::binary) << text;
    refused(file, 1, "not a recording of GRETA");
    EXPECT_EQ(content(file), text);
  }
  std::ofstream(folder_.path() / "odd.jsonl") << R"({"format":"greta-recording 9"})"
                                              << "\n";
  refused("odd.jsonl", 1, "damaged");
  refused("absent/one.jsonl", 1, "can't be written");
  EXPECT_EQ(record("one.jsonl").value().recorded, 12U) << "refusals change nothing";
}

TEST_F(SpaceRecorder, AnEmptyFileAndACutHeaderAreContinued) {
  record("whole.jsonl", 3).value();
  const std::string whole = content("whole.jsonl");
  for (const std::size_t length : {0UL, 1UL, 40UL, whole.find('\n')}) {
    std::ofstream(folder_.path() / "cut.jsonl") << whole.substr(0, length);
    EXPECT_EQ(record("cut.jsonl").value().recorded, 12U) << length;
    expect_everything("cut.jsonl");
  }
}

TEST_F(SpaceRecorder, RefusesAnotherDriverCompilerOrTemplate) {
  record("one.jsonl", 3).value();
  const std::string whole = content("one.jsonl");
  const auto end = whole.find('\n');
  const auto header = nlohmann::json::parse(whole.substr(0, end));
  const auto with = [&](const nlohmann::json& changes) {
    auto changed = nlohmann::ordered_json::parse(whole.substr(0, end));
    changed.merge_patch(nlohmann::ordered_json(changes));
    const std::string text = changed.dump() + whole.substr(end);
    std::ofstream(folder_.path() / "other.jsonl") << text;
    return text;
  };
  ASSERT_TRUE(header.contains("template_key"));
  for (const auto& [changes, why] :
       {std::pair<nlohmann::json, std::string>{{{"device", {{"driver", "older"}}}},
                                               "another driver: older, and here"},
        {{{"device", {{"compiler", "older"}}}}, "another compiler: older, and here"},
        {{{"template_key", "older"}}, "another template of the kernels: older, and here"}}) {
    const std::string text = with(changes);
    const auto result = record("other.jsonl");
    ASSERT_FALSE(result) << why;
    EXPECT_NE(result.failure().message.find(why), std::string::npos) << result.failure().message;
    EXPECT_EQ(content("other.jsonl"), text);
  }
  with({{"template_key", nullptr}});  // as an earlier version wrote it
  EXPECT_EQ(record("other.jsonl").value().recorded, 12U);
}

}  // namespace
}  // namespace greta::test::space_recorder_test
