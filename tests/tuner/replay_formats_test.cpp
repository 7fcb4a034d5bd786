// Protects: recordings of every format are read, values that are not integers included; failures
// stay failures; files without their end are completed, and damaged ones end in one line.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "kernels/model/random.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/replay/gzip.hpp"
#include "tuner/replay/json_completion.hpp"
#include "tuner/replay/replay_run.hpp"
#include "tuner/replay/space_recording.hpp"

namespace greta::test::replay_formats_test {
namespace {

class ReplayFormats : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return folder_.path() / name;
  }
  Result<Recording> read(const std::string& text) const {
    return Recording::load(write("recording.json", text));
  }

  TemporaryFolder folder_;
};

const std::string cache = R"({"device_name": "a GPU", "kernel_name": "k",
 "tune_params_keys": ["A", "fast", "mode", "ratio"],
 "tune_params": {"A": [16, 2], "fast": [true, false], "mode": ["wide", "narrow"],
                 "ratio": [0.5, 0.25]},
 "cache": {
"2,True,wide,0.5": {"A": 2, "fast": true, "mode": "wide", "ratio": 0.5, "time": 1.5,
                    "times": [1.5, 1.5]},
"16,False,narrow,0.25": {"time": 0.5},
"16,True,wide,0.5": {"time": "CompilationFailedConfig"},
"16,True,wide,0.25": {"time": "InvalidConfig"},
"2,True,narrow,0.5": {"time": NaN},
"2,True,narrow,0.25": {"time": -Infinity},
"2,False,narrow,0.25": {"time": 1e300},
"2,False,narrow,0.5": {"other": 1}
}})";

Config config(int a, int fast, int mode, int ratio) {
  return {"k", {{"A", a}, {"fast", fast}, {"mode", mode}, {"ratio", ratio}}};
}

TEST_F(ReplayFormats, AnyValueIsReadAndEveryFailureFails) {
  const Recording recording = read(cache).value();
  EXPECT_EQ(recording.space().count(), 8U);
  EXPECT_EQ(recording.device_name(), "a GPU");
  EXPECT_EQ(recording.optimum_us(), 500);
  EXPECT_FALSE(recording.completed());
  // Values that are not integers have codes in ascending order: false, true; narrow, wide.
  EXPECT_EQ(recording.trial(config(2, 1, 1, 1)).measurement.median_us, 1500);
  EXPECT_EQ(recording.trial(config(16, 0, 0, 0)).measurement.median_us, 500);
  EXPECT_EQ(recording.trial(config(16, 1, 1, 1)).failure, Status::compile);
  EXPECT_EQ(recording.trial(config(16, 1, 1, 0)).failure, Status::constraints);
  for (const Config& failed :
       {config(2, 1, 0, 1), config(2, 1, 0, 0), config(2, 0, 0, 0), config(2, 0, 0, 1)}) {
    EXPECT_EQ(recording.trial(failed).failure, Status::launch) << failed.text();
  }
  EXPECT_FALSE(recording.space().valid(config(16, 0, 1, 0)));
}

TEST_F(ReplayFormats, T4HasUnitsObjectivesAndVariants) {
  const Recording recording = read(R"({"schema_version": "1.1.0", "results": [
 {"configuration": {"variant": "tiled", "BM": 16}, "invalidity": "correct", "objectives": ["time"],
  "measurements": [{"name": "other", "value": 7}, {"name": "time", "value": 2, "unit": "us"}]},
 {"configuration": {"variant": "tiled", "BM": 32}, "invalidity": "correct", "objectives": ["time"],
  "measurements": [{"name": "time", "value": 3, "unit": ""}]},
 {"configuration": {"variant": "matrix", "WM": 1, "WN": 2}, "invalidity": "timeout",
  "measurements": []},
 {"configuration": {"variant": "matrix", "WM": 2, "WN": 2}, "invalidity": "runtime",
  "measurements": []}]})")
                                  .value();
  EXPECT_EQ(recording.space().alternatives().size(), 2U);
  EXPECT_EQ(recording.space().count("matrix"), 2U);
  EXPECT_EQ(recording.trial(Config{"tiled", {{"BM", 16}}}).measurement.median_us, 2);
  EXPECT_EQ(recording.trial(Config{"tiled", {{"BM", 32}}}).measurement.median_us, 3000);
  EXPECT_EQ(recording.trial(Config{"matrix", {{"WM", 1}, {"WN", 2}}}).failure, Status::timeout);
  EXPECT_EQ(recording.trial(Config{"matrix", {{"WM", 2}, {"WN", 2}}}).failure, Status::launch);
}

Trial measured(Config config, double us) {
  Trial trial;
  trial.config = std::move(config);
  trial.measurement.median_us = trial.measurement.low_us = trial.measurement.high_us = us;
  return trial;
}

/// A recording of GRETA with three trials of two variants.
std::string own_recording() {
  RecordingHeader header;
  header.version = "1.2.3";
  header.device = {{"name", "a card"}};
  header.problem = "gemm f32 m=1";
  header.space_count = 6;
  header.alternatives = {{"tiled", {{"BM", {16, 32}}, {"BN", {8, 16}}}, {}},
                         {"matrix", {{"WM", {1, 2}}}, {}}};
  Trial failed = measured({"matrix", {{"WM", 2}}}, 0);
  failed.failure = Status::correctness;
  failed.message = "wrong \"everywhere\"";
  return header.line() + recording_line(measured({"tiled", {{"BM", 32}, {"BN", 8}}}, 12.5)) +
         recording_line(measured({"tiled", {{"BM", 16}, {"BN", 16}}}, 10)) + recording_line(failed);
}

TEST_F(ReplayFormats, OwnRecordingsHaveVariantsAndFailures) {
  const Recording recording = read(own_recording()).value();
  EXPECT_EQ(recording.device_name(), "a card");
  EXPECT_EQ(recording.space().count(), 3U);
  EXPECT_EQ(recording.optimum_us(), 10);
  const Trial failed = recording.trial(Config{"matrix", {{"WM", 2}}});
  EXPECT_EQ(failed.failure, Status::correctness);
  EXPECT_EQ(failed.message, "wrong \"everywhere\"");
  const RecordingHeader header = read_recording_header(own_recording());
  EXPECT_EQ(header.problem, "gemm f32 m=1");
  EXPECT_EQ(header.space_count, 6U);
}

TEST_F(ReplayFormats, ALineThatWasBeingWrittenIsIgnored) {
  const std::string whole = own_recording();
  const Recording recording = read(whole.substr(0, whole.size() - 5)).value();
  EXPECT_TRUE(recording.completed());
  EXPECT_EQ(recording.space().count(), 2U);
}

TEST_F(ReplayFormats, CompressedFilesAreRead) {
  const auto file = write("cache.json.gz", compress(cache));
  EXPECT_EQ(Recording::load(file).value().space().count(), 8U);
  const auto two = write("two.gz", compress(cache.substr(0, 100)) + compress(cache.substr(100)));
  EXPECT_EQ(Recording::load(two).value().space().count(), 8U);
  EXPECT_EQ(decompress(compress(""), 1).value(), "");
  EXPECT_FALSE(decompress(compress(cache), cache.size() - 1));
  for (const std::size_t length : {3UL, 20UL}) {
    const auto cut = write("cut.gz", compress(cache).substr(0, length));
    const auto loaded = Recording::load(cut);
    ASSERT_FALSE(loaded) << length;
    EXPECT_EQ(loaded.failure().message,
              "recording " + cut.string() + " can't be read: its compressed data ends early");
  }
}

TEST_F(ReplayFormats, ACompressedFileWithoutItsEndIsCompleted) {
  for (const std::string& whole : {cache, own_recording()}) {
    const std::string bytes = compress(whole);
    const Recording recording =
        Recording::load(write("cut.gz", bytes.substr(0, bytes.size() - 1))).value();
    EXPECT_TRUE(recording.completed());
    EXPECT_EQ(recording.space().count(), read(whole).value().space().count());
    EXPECT_FALSE(decompress(bytes.substr(0, bytes.size() - 1), 1 << 20));
  }
}

TEST_F(ReplayFormats, OwnRecordingsMayHaveBlankLinesAndErrorsNameTheirLine) {
  std::string text = own_recording();
  const auto second = text.find('\n') + 1, third = text.find('\n', second) + 1;
  EXPECT_EQ(read(std::string(text).insert(third, "\n \r\n")).value().space().count(), 3U);
  for (const auto& [line, why] :
       {std::pair("{\"variant\":\n", "line 3 is not a JSON object"),
        {"[1]\n", "line 3 is not a JSON object"},
        {"{\"variant\":\"tiled\"}\n", "line 3 lacks a field"},
        {"{\"variant\":\"no\",\"values\":[]}\n", "line 3: unknown variant no"}}) {
    const auto loaded = read(std::string(text).insert(third, line));
    ASSERT_FALSE(loaded) << line;
    EXPECT_NE(loaded.failure().message.find(why), std::string::npos) << loaded.failure().message;
  }
  for (const char* const damaged : {"{\"a\": tru, }", "{\"cache\": 1}"}) {
    const auto loaded = read(damaged);
    ASSERT_FALSE(loaded) << damaged;
    EXPECT_EQ(loaded.failure().message.find("json.exception"), std::string::npos)
        << loaded.failure().message;
  }
}

TEST_F(ReplayFormats, AMissingEndIsCompleted) {
  const std::size_t third = cache.find("\"16,True,wide,0.5\"");
  const std::size_t fourth = cache.find("\"16,True,wide,0.25\"");
  // Kernel Tuner's open files end after an entry, with or without the comma.
  for (const std::size_t length : {third - 1, third - 2, third + 4, third + 30, fourth - 3}) {
    const Recording recording = read(cache.substr(0, length)).value();
    EXPECT_TRUE(recording.completed());
    EXPECT_EQ(recording.space().count(), 2U) << length;
  }
  EXPECT_EQ(complete_json(R"({"a": [1, NaN, Infinity], "b": "NaN \" Infinity"})").text,
            R"({"a": [1, null, null    ], "b": "NaN \" Infinity"})");
}

/// Loads a damaged text. It is a recording, or one line says why it is not.
void expect_recording_or_one_line(const Result<Recording>& loaded) {
  if (loaded) {
    EXPECT_GT(loaded->space().count(), 0U);
    return;
  }
  EXPECT_NE(loaded.failure().message.find("can't be read: "), std::string::npos);
}

TEST_F(ReplayFormats, DamagedFilesNeverDoMoreThanFail) {
  std::mt19937_64 random(5);
  const std::string alphabet = "{}[]\",:0129.-eNItrue \n\\x\x01\xff";
  for (const std::string& whole : {cache, own_recording(), compress(cache)}) {
    for (std::size_t length = 0; length < whole.size(); length += 7) {
      expect_recording_or_one_line(read(whole.substr(0, length)));
    }
    for (int round = 0; round < 300; ++round) {
      std::string damaged = whole;
      for (int change = 0; change < 3; ++change) {
        const auto at = kernels::uniform_below(random, damaged.size());
        damaged[at] = alphabet[kernels::uniform_below(random, alphabet.size())];
      }
      expect_recording_or_one_line(read(damaged));
    }
  }
}

TEST_F(ReplayFormats, ARunIsReproducibleAndSummarised) {
  const Recording recording = read(cache).value();
  const ReplayOptions options{.budget = Budget::trials_of(100), .seed = 3, .ahead = 2};
  const ReplayRun run = replay(recording.shuffled(3), "random", options);
  ASSERT_EQ(run.times_us.size(), 8U);  // the space is smaller than the budget
  EXPECT_EQ(run.times_us, replay(recording.shuffled(3), "random", options).times_us);
  EXPECT_EQ(std::count_if(run.times_us.begin(), run.times_us.end(),
                          [](double us) { return std::isinf(us); }),
            6);
  EXPECT_EQ(run.share_after(8), 1);
  const auto to_best = run.evaluations_to(1.0);
  EXPECT_EQ(run.times_us[to_best - 1], 500);
  EXPECT_EQ(run.share_after(to_best - 1) == 0 || run.share_after(to_best - 1) == 500.0 / 1500,
            true);
}

// Variants have got parameters since some were recorded, which the prior of `auto` needs.
TEST(RecordingsOfResults, AllCanBeReplayed) {
  const std::filesystem::path results =
      std::filesystem::path(GRETA_TEST_DATA).parent_path().parent_path() / "results";
  int recordings = 0, with_prior = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(results)) {
    if (!entry.path().filename().string().ends_with(".jsonl.gz")) continue;
    SCOPED_TRACE(entry.path().string());
    const auto recording = Recording::load(entry.path());
    ASSERT_TRUE(recording) << recording.failure().message;
    const auto shuffled = recording->shuffled(7);
    const auto prior = shuffled.prior();
    std::mt19937_64 random(7);
    int known = 0;
    for (int i = 0; prior && i < 20; ++i) {
      const auto choice = shuffled.space().choice(shuffled.space().sample(random));
      known += std::isfinite(prior(choice.value())) ? 1 : 0;
    }
    with_prior += known > 10 ? 1 : 0;
    ++recordings;
  }
  EXPECT_GE(recordings, 30);
  EXPECT_EQ(with_prior, recordings);
}

TEST(ReplaySummary, AveragesOverSeedsThenOverSpaces) {
  const auto run = [](std::vector<double> times) {
    times.resize(20, 100);
    return ReplayRun{.times_us = times, .optimum_us = 10};
  };
  const auto summary =
      summarise("s", {{run({20, 10}), run({40, 10.4})}, {run({10}), run({90, 80, 10.8})}});
  // (1 + 10/10.4) / 2 and (1 + 10/10.8) / 2.
  ASSERT_EQ(summary.shares.size(), 1U);
  EXPECT_NEAR(summary.shares[0], std::sqrt((1 + 10 / 10.4) / 2 * (1 + 10 / 10.8) / 2), 1e-12);
  EXPECT_EQ(summary.median_to_10, 2);
  EXPECT_EQ(summary.median_to_5, 2);
  EXPECT_EQ(summary.runs_within_5, 0.75);
}

}  // namespace
}  // namespace greta::test::replay_formats_test
