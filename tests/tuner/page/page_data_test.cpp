// Protects: the data of the page: columns, escaping, summaries, searches, baselines and passes.

#include "tuner/page/page_data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.hpp"
#include "tests/tuner/page/sample.hpp"
#include "tuner/page/columns.hpp"
#include "tuner/page/page.hpp"
#include "tuner/page/page_parts.hpp"
#include "tuner/page/summary.hpp"
#include "tuner/report/csv.hpp"

namespace greta::test::page_data_test {
namespace {

using nlohmann::json;

TEST(Columns, Base64IsThatOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(Columns, AreLittleEndian) {
  const std::vector<float> one{1};  // 00 00 80 3f
  EXPECT_EQ(column(std::span<const float>(one)), json({{"f4", "AACAPw=="}}));
  const std::vector<std::uint16_t> number{0x0102};
  EXPECT_EQ(column(std::span<const std::uint16_t>(number)), json({{"u2", "AgE="}}));
  const std::vector<std::int32_t> negative{-2};
  EXPECT_EQ(column(std::span<const std::int32_t>(negative)), json({{"i4", "/v///w=="}}));
}

TEST(ScriptJson, HasNothingThatEndsAScript) {
  const json data{{hostile, "a\xe2\x80\xa9z"}, {"cut", "\xff<"}};
  const std::string text = script_json(data);
  for (const char* harm : {"<", ">", "&", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xff"})
    EXPECT_EQ(text.find(harm), std::string::npos) << harm;
  const json read = json::parse(text);
  EXPECT_EQ(read[hostile], "a\xe2\x80\xa9z");
  EXPECT_EQ(read["cut"], "\xef\xbf\xbd<");
}

TEST(Summary, GeometricMeanAndQuarters) {
  const Spread spread = spread_of({4, 1, 2, 0, std::nan(""), -3});
  EXPECT_EQ(spread.count, 3U);
  EXPECT_DOUBLE_EQ(spread.geometric_mean, 2);  // (4 · 1 · 2)^(1/3)
  EXPECT_DOUBLE_EQ(spread.least, 1);
  EXPECT_DOUBLE_EQ(spread.quarter, 1.5);
  EXPECT_DOUBLE_EQ(spread.half, 2);
  EXPECT_DOUBLE_EQ(spread.three_quarters, 3);
  EXPECT_DOUBLE_EQ(spread.most, 4);
  EXPECT_EQ(spread_of({}).geometric_mean, 0);
}

TEST(Summary, ParetoKeepsWhatNothingBeats) {
  const double nan = std::nan("");
  //                             0  1  2  3  4    5
  const std::vector<double> x = {1, 2, 3, 2, 4, nan};
  const std::vector<double> y = {9, 5, 6, 5, 1, 0};
  EXPECT_EQ(pareto(x, y),
            (std::vector<std::size_t>{0, 1, 3, 4}));  // 2 is beaten, 1 and 3 are equal
  EXPECT_EQ(pareto({1, 1}, {2, 1}), (std::vector<std::size_t>{1}));
  EXPECT_TRUE(pareto({}, {}).empty());
}

/// Writes the sample files and reads the page's data, once.
class Page : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    write_page_database(folder / "tuned.db");
    write_page_baselines(folder / "before.csv", folder / "after.csv");
    const TunedDb db = TunedDb::open(folder / "tuned.db", TunedDb::Mode::read_only);
    PageInput input{
        .utc = "2026-11-24T00:00:00Z",
        .tune_command = [](const Problem& problem, const std::string& device, bool,
                           const PageDatabase&) { return problem.key() + " on " + device; }};
    input.databases = {{hostile, &db}};
    input.baselines = {{"after.csv", read_csv(folder / "after.csv").value()},
                       {"before.csv", read_csv(folder / "before.csv").value()}};
    input.traces = {{"trace.json", json::parse(R"({"traceEvents": [
        {"name": "host", "ph": "X", "pid": 0, "ts": 0, "dur": 9000},
        {"name": "layer 0 norm", "ph": "X", "pid": 1, "ts": 0, "dur": 10},
        {"name": "layer 1 norm", "ph": "X", "pid": 1, "ts": 12, "dur": 20},
        {"name": "argmax", "ph": "X", "pid": 1, "ts": 40, "dur": 2},
        {"name": "argmax", "ph": "X", "pid": 1, "ts": 5000, "dur": 3}]})")}};
    data_ = page_data(input, Catalog::built_in());
  }

  /// Returns the first device of an API.
  static const json& device(const std::string& backend) {
    for (const auto& one : data_["devices"])
      if (one["backend"] == backend) return one;
    throw std::runtime_error("no device of " + backend);
  }

  static inline json data_;
};

TEST_F(Page, SummarisesADevice) {
  const json& hip = device("hip")["summary"];
  EXPECT_EQ(hip["problems"], 4);
  EXPECT_EQ(hip["beaten"], 3);
  EXPECT_EQ(hip["stale"], 4);  // their templates are not today's
  // Speed-ups of 1.8, 2, 1.1, and 1 for the default that stood.
  EXPECT_NEAR(hip["speedup"]["geometric_mean"], std::pow(1.8 * 2 * 1.1, 0.25), 1e-9);
  EXPECT_EQ(hip["speedup"]["count"], 4);
  EXPECT_EQ(device("hip")["ceilings"]["copy_gbps"], 3900);
}

TEST_F(Page, ComparesTheApisOfACard) {
  ASSERT_EQ(data_["rivals"].size(), 1U);
  const json& pair = data_["rivals"][0];
  EXPECT_EQ(data_["devices"][pair["a"].get<std::size_t>()]["hardware"],
            data_["devices"][pair["b"].get<std::size_t>()]["hardware"]);
  ASSERT_EQ(pair["problems"].size(), 2U);
  for (const auto& problem : pair["problems"]) {
    const json& a = data_["results"][problem["a"].get<std::size_t>()];
    const json& b = data_["results"][problem["b"].get<std::size_t>()];
    EXPECT_EQ(a["problem"], b["problem"]);
    EXPECT_EQ(a["device"], pair["a"]);
    EXPECT_NEAR(problem["ratio"], a["us"].get<double>() / b["us"].get<double>(), 1e-9);
  }
}

TEST_F(Page, HasASearchWithItsTrials) {
  ASSERT_EQ(data_["searches"].size(), 3U);
  const json& search = data_["searches"][0];
  EXPECT_EQ(search["trials"], 240);
  EXPECT_EQ(search["statuses"], json({"ok", "timeout", "compile"}));
  EXPECT_EQ(search["variants"], json({"tiled", "split_k"}));
  EXPECT_EQ(search["parameters"][0]["name"], "BM");
  EXPECT_EQ(search["parameters"][0]["values"], json({16, 32, 64, 128}));
  EXPECT_EQ(search["messages"][0]["text"], "too many registers");
  EXPECT_EQ(search["messages"][0]["log"], "line 1\nline 2");
  EXPECT_EQ(search["messages"][0]["count"], 18);  // 7, 20, … 228
  const json& result = data_["results"][search["result"].get<std::size_t>()];
  EXPECT_EQ(result["search"], 0);
  // 240 bytes, of which every fifth trial is the second variant.
  EXPECT_EQ(search["columns"]["variant"]["u1"].get<std::string>().size(), 320U);
  EXPECT_TRUE(search["columns"]["variant"]["u1"].get<std::string>().starts_with("AAAAAAEAAAAAAQ"));
}

TEST_F(Page, FinalistsHaveTheirRounds) {
  const json& search = data_["searches"][0];
  const json& result = data_["results"][search["result"].get<std::size_t>()];
  const json& finalists = result["finalists"];
  ASSERT_EQ(finalists.size(), 4U);
  EXPECT_EQ(finalists[0]["is_default"], true);
  EXPECT_EQ(finalists[0]["speedup"], 1);
  EXPECT_EQ(finalists[1]["config"], result["config"]);
  EXPECT_EQ(finalists[1]["rounds_us"], result["rounds_us"]);
  EXPECT_NEAR(finalists[1]["speedup"], 1.8, 0.01);
  EXPECT_NEAR(finalists[2]["us"].get<double>() / finalists[1]["us"].get<double>(), 1.004, 1e-9);
  EXPECT_EQ(finalists[2]["left"], nullptr);
  EXPECT_EQ(finalists[3]["left"], "slower");
  EXPECT_NEAR(finalists[3]["speedup"], 1, 1e-9);  // it has the default's times
  EXPECT_EQ(finalists[3]["rounds_us"]["f4"].get<std::string>().size(), 44U);  // 8 times
}

TEST_F(Page, FindsTheParameterThatMatters) {
  const json& found = data_["searches"][0]["importance"];
  EXPECT_GT(found["fit"], 0.8);
  double largest = 0, second = 0;
  int which = -2;
  for (const auto& one : found["marginals"]) {
    const double share = one["share"];
    if (share > largest) {
      second = largest;
      largest = share;
      which = one["parameter"];
    } else {
      second = std::max(second, share);
    }
  }
  EXPECT_EQ(which, 0);  // BM, whose times differ by a factor of 3
  EXPECT_GT(largest, 2 * second);
}

TEST_F(Page, AnswersAndCommandsOfALookup) {
  std::size_t exact = 0, commands = 0;
  for (const auto& one : data_["lookups"]) {
    for (const auto& answer : one["answers"]) {
      exact += answer["origin"] == "exact" ? 1 : 0;
      commands += answer["command"].is_null() ? 0 : 1;
      EXPECT_EQ(answer["command"].is_null(), answer["origin"] == "exact");
    }
  }
  // Four problems on three devices; the configurations of the sample are not those of the
  // templates, so that only defaults and what is valid can answer.
  EXPECT_EQ(exact + commands, 12U);
  EXPECT_FALSE(data_["next"].empty());
}

TEST_F(Page, NextStepsAreThoseWithTheMostAboveTheRoofline) {
  ASSERT_EQ(data_["next"].size(), 7U);  // all results are stale
  double before = 1e9;
  for (const auto& step : data_["next"]) {
    const json& result = data_["results"][step["result"].get<std::size_t>()];
    EXPECT_EQ(step["problem"], result["problem"]);
    EXPECT_EQ(step["device"], result["device"]);
    const double us = result["us"], gain = step["gain_us"];
    EXPECT_NEAR(gain, us * (1 - result["roofline"].get<double>()), 1e-9);
    EXPECT_LE(gain, before);
    before = gain;
  }
}

TEST_F(Page, BaselinesAreInTheOrderOfTheirDates) {
  ASSERT_EQ(data_["baselines"].size(), 1U);
  const json& group = data_["baselines"][0];
  EXPECT_EQ(group["files"][0]["name"], "before.csv");
  EXPECT_EQ(group["rows"].size(), 6U);
  ASSERT_EQ(group["comparisons"].size(), 1U);
  const json& comparison = group["comparisons"][0];
  EXPECT_EQ(comparison["regressions"], 1);
  EXPECT_EQ(comparison["changes"][0]["finding"], "slower");
  EXPECT_EQ(comparison["changes"][0]["processor"], false);
  EXPECT_NEAR(comparison["changes"][0]["ratio"], 1.5, 0.02);
}

TEST(BaselineData, GroupsFilesByTheirPreset) {
  const TemporaryFolder folder;
  write_page_baselines(folder / "before.csv", folder / "after.csv");
  const auto all = read_csv(folder / "before.csv").value();
  const auto newer = read_csv(folder / "after.csv").value();
  // A part of a preset is another one, although the larger one has all of its benchmarks.
  const std::vector<MeasuredResult> part(newer.begin(), newer.begin() + 3);
  std::vector<MeasuredResult> grown(newer.begin() + 1, newer.end());
  const json groups = baseline_data({{"all", all}, {"part", part}, {"grown", grown}});
  ASSERT_EQ(groups.size(), 2U);
  ASSERT_EQ(groups[0]["files"].size(), 2U);
  EXPECT_EQ(groups[0]["files"][1]["name"], "grown");
  EXPECT_EQ(groups[1]["files"][0]["name"], "part");
  const json& comparison = groups[0]["comparisons"][0];
  ASSERT_EQ(comparison["only_from"].size(), 1U);
  EXPECT_NE(comparison["only_from"][0].get<std::string>().find("m=1 "), std::string::npos);
  EXPECT_EQ(comparison["only_to"], json::array());
}

TEST(BaselineData, FilesThatNameTheirPresetAreOfIt) {
  const TemporaryFolder folder;
  write_page_baselines(folder / "before.csv", folder / "after.csv");
  const auto all = read_csv(folder / "after.csv").value();
  const auto of = [](std::vector<MeasuredResult> rows, const std::string& preset) {
    for (auto& row : rows) row.preset = preset;
    return rows;
  };
  const std::vector<MeasuredResult> part(all.begin(), all.begin() + 3);
  // The same benchmarks of two presets are two series, a part of a preset is of its series, and
  // files that name none are of the first series with their benchmarks.
  const json groups = baseline_data({{"old", all},
                                     {"standard", of(all, "standard")},
                                     {"perf", of(all, "perf")},
                                     {"part", of(part, "perf")},
                                     {"unknown", all}});
  const auto names = [](const json& group) {
    std::vector<std::string> list;
    for (const auto& file : group["files"]) list.push_back(file["name"]);
    return list;
  };
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0]["preset"], "standard");
  EXPECT_EQ(names(groups[0]), (std::vector<std::string>{"old", "standard", "unknown"}));
  EXPECT_EQ(groups[1]["preset"], "perf");
  EXPECT_EQ(names(groups[1]), (std::vector<std::string>{"perf", "part"}));
  // A file of two presets is of two series.
  auto both = of(part, "a");
  for (const auto& row : of(part, "b")) both.push_back(row);
  EXPECT_EQ(baseline_data({{"both", both}}).size(), 2U);
}

TEST_F(Page, PassesOfATrace) {
  ASSERT_EQ(data_["passes"].size(), 2U);
  const json& pass = data_["passes"][0];
  EXPECT_EQ(pass["launches"], 3);
  EXPECT_EQ(pass["wall_us"], 42);
  EXPECT_EQ(pass["gaps_us"], 10);
  EXPECT_EQ(pass["tokens"], nullptr);
  EXPECT_EQ(pass["configurations"], "");
  ASSERT_EQ(pass["operations"].size(), 2U);
  EXPECT_EQ(pass["operations"][0]["name"], "argmax");
  EXPECT_EQ(pass["operations"][1]["name"], "norm");
  EXPECT_EQ(pass["operations"][1]["runs"], 2);
  EXPECT_EQ(pass["operations"][1]["us"], 30.0);
  EXPECT_EQ(pass["operations"][1]["origin"], "");
  EXPECT_EQ(data_["passes"][1]["wall_us"], 3);
}

TEST(PassData, TellsPrefillFromDecodeStepAndWhatRan) {
  const json trace = json::parse(
      R"({"otherData": {"configurations": "default", "device": "Card of HIP"}, "traceEvents": [
      {"name": "layer 0 qkv", "ph": "X", "pid": 1, "ts": 0, "dur": 10, "args": {"tokens": 5, "problem": "gemm m=5",
       "config": "tiled BM=16", "origin": "exact", "launches": 2, "speedup": 1.5, "expected_regret": 1.25}},
      {"name": "layer 1 qkv", "ph": "X", "pid": 1, "ts": 10, "dur": 20, "args": {"tokens": 5, "problem": "gemm m=5",
       "config": "tiled BM=16", "origin": "exact", "launches": 2}},
      {"name": "layer 2 qkv", "ph": "X", "pid": 1, "ts": 30, "dur": 5, "args": {"tokens": 5, "problem": "gemm m=6",
       "config": 7, "origin": null}},
      {"name": "layer 0 qkv", "ph": "X", "pid": 1, "ts": 36, "dur": 4, "args": {"tokens": 1}},
      {"name": ["odd"], "ph": 5, "pid": "one"}, 3]
})");
  const json passes = pass_data({{"trace.json", trace}});
  ASSERT_EQ(passes.size(), 2U);  // without a gap: the number of tokens differs
  EXPECT_EQ(passes[0]["tokens"], 5);
  EXPECT_EQ(passes[1]["configurations"], "default");
  EXPECT_EQ(passes[1]["device"], "Card of HIP");
  EXPECT_EQ(passes[0]["launches"], 5);  // 2 + 2, and 1 where it is unknown
  EXPECT_EQ(passes[0]["wall_us"], 35);
  ASSERT_EQ(passes[0]["operations"].size(), 2U);  // one for each problem
  const json& first = passes[0]["operations"][0];
  EXPECT_EQ(first["name"], "qkv");
  EXPECT_EQ(first["problem"], "gemm m=5");
  EXPECT_EQ(first["runs"], 2);
  EXPECT_EQ(first["launches"], 4);
  EXPECT_EQ(first["us"], 30);
  EXPECT_EQ(first["config"], "tiled BM=16");
  EXPECT_EQ(first["origin"], "exact");
  EXPECT_EQ(first["speedup"], 1.5);
  EXPECT_EQ(first["regret"], 1.25);
  EXPECT_EQ(passes[0]["operations"][1]["config"], "");
  EXPECT_EQ(passes[1]["tokens"], 1);
  EXPECT_EQ(passes[1]["wall_us"], 4);
}

TEST(TrialData, WordsStandForValues) {
  std::vector<Trial> trials;
  for (int i = 0; i < 40; ++i) {
    Trial trial = page_trial(0);
    trial.config = {"described", {{"MODE", i % 2}, {"BLOCK", 32 << (i % 4)}}};
    trial.measurement.median_us = i % 2 == 0 ? 10 : 20;
    trials.push_back(trial);
  }
  const json data = trial_data(trials, {{"MODE", {"strided", "blocked"}}, {"BLOCK", {"a"}}});
  EXPECT_EQ(data["parameters"][0]["values"], json({"strided", "blocked"}));
  EXPECT_EQ(data["parameters"][1]["values"], json({32, 64, 128, 256}));  // beyond its words
  EXPECT_EQ(trial_data(trials)["parameters"][0]["values"], json({0, 1}));
}

// A parameter that trials of one variant alone have: its times are theirs, and not what a model
// predicts for others.
TEST(TrialData, EffectsAreOfTheTrialsThatHaveTheValue) {
  struct Measured {
    const char* variant;
    int split;  // 0: the trial has none
    double us;  // 0: it failed
  };
  std::vector<Trial> trials;
  for (const auto& [variant, split, us] :
       {Measured{"tiled", 0, 90}, Measured{"tiled", 0, 70}, Measured{"split_k", 2, 10},
        Measured{"split_k", 2, 30}, Measured{"split_k", 4, 50}, Measured{"split_k", 2, 20},
        Measured{"split_k", 2, 60}, Measured{"split_k", 8, 0}}) {
    Trial trial = page_trial(us > 0 ? 0 : 7);  // 7 fails
    trial.config = {variant, {{"BM", 64}}};
    if (split > 0) trial.config.values.emplace_back("SPLIT", split);
    trial.measurement.median_us = us;
    trials.push_back(trial);
  }
  const json effects = trial_data(trials)["effects"];
  ASSERT_EQ(effects.size(), 2U);  // BM has one value
  EXPECT_EQ(effects[0], json({{"parameter", -1},
                              {"trials", {2, 5}},
                              {"best_us", {70.0, 10.0}},
                              {"quarter_us", {75.0, 20.0}},
                              {"median_us", {80.0, 30.0}},
                              {"three_quarters_us", {85.0, 50.0}}}));
  // SPLIT=2: 10, 20, 30 and 60, whose quarters lie at 3/4 of the way from 10 to 20, half of that
  // from 20 to 30, and a quarter of that from 30 to 60.
  EXPECT_EQ(effects[1], json({{"parameter", 1},
                              {"trials", {4, 1, 0}},
                              {"best_us", {10.0, 50.0, nullptr}},
                              {"quarter_us", {17.5, 50.0, nullptr}},
                              {"median_us", {25.0, 50.0, nullptr}},
                              {"three_quarters_us", {37.5, 50.0, nullptr}}}));
}

TEST_F(Page, BaselinesNameTheCommit) {
  const json& files = data_["baselines"][0]["files"];
  EXPECT_EQ(files[0]["revision"], "0123456789ab");
  EXPECT_EQ(files[1]["revision"], "ba9876543210-dirty");
}

TEST_F(Page, HostileTextIsDataOnly) {
  const auto html = page_html(data_);
  if (!html) {
    EXPECT_EQ(html.failure().status, Status::unavailable);
    EXPECT_NE(html.failure().message.find("this build has no report page: "), std::string::npos);
    return;
  }
  EXPECT_EQ(html->find("onerror=\""), std::string::npos);
  EXPECT_EQ(html->find("</script><img"), std::string::npos);
  const std::string begin = "id=\"data\">";
  const auto from = html->find(begin) + begin.size();
  EXPECT_EQ(json::parse(html->substr(from, html->find("</script>", from) - from)), data_);
}

}  // namespace
}  // namespace greta::test::page_data_test
