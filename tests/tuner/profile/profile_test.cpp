// Protects: a profile verifies and times first and counts afterwards in another evaluator; figures
// come from the counters that the GPU has, and absent ones are told as absent; what a profile says
// in text and in JSON, with and without counters.

#include <gtest/gtest.h>

#include "tests/layers.hpp"
#include "tests/tuner/fake_evaluator.hpp"
#include "tuner/profile/figures.hpp"
#include "tuner/profile/profile_report.hpp"
#include "tuner/profile/profiler.hpp"

namespace greta::test::profile_test {
namespace {

CounterReading sample_reading() {
  CounterReading reading{.source = {"CUPTI 13.0", "GH100"}, .values = {}, .passes = 9};
  reading.values = {
      {"dram__bytes_read.sum", 64e6},
      {"dram__bytes_write.sum", 32e6},
      {"sm__warps_active.avg.pct_of_peak_sustained_active", 43.75},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 750},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 75},
      {"sm__cycles_active.sum", 1000},
      {"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", 50},
      {"smsp__average_warps_active_per_issue_active.ratio", 8},
      {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", 2},
      {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", 1},
  };
  return reading;
}

TEST(ProfileFigures, ComeFromTheCountersThatTheGpuHas) {
  const Counters counters = figures_of(sample_reading(), true);
  EXPECT_EQ(counters.source, "CUPTI 13.0, GH100");
  EXPECT_EQ(counters.passes, 9);
  EXPECT_EQ(counters.figure("memory_read_bytes"), 64e6);
  EXPECT_EQ(counters.figure("occupancy_share"), 0.4375);
  EXPECT_EQ(counters.figure("shared_bytes"), 750 * 128);
  EXPECT_EQ(counters.figure("shared_bytes_per_clock"), 96);
  EXPECT_EQ(counters.figure("shared_conflict_share"), 0.1);
  EXPECT_EQ(counters.figure("matrix_share"), 0.5);  // of the second counter, as there is no first
  EXPECT_EQ(counters.figure("stall_barrier_share"), 0.25);
  EXPECT_FALSE(counters.figure("l2_bytes"));  // absent, not 0
  EXPECT_FALSE(counters.figure("balance_share"));
  const auto longest = stalls(counters);
  ASSERT_EQ(longest.size(), 1U);  // a warp that issues waits for nothing
  EXPECT_EQ(longest[0].reason->words, "other warps at barriers");
}

TEST(ProfileFigures, EveryFigureOfAFormulaIsDescribed) {
  std::set<std::string> known;
  for (const Figure& figure : figures()) known.insert(std::string(figure.name));
  for (const StallReason& reason : stall_reasons()) known.insert(stall_figure(reason.name));
  CounterReading all = sample_reading();
  for (const std::string& name : counter_names()) all.values[name] = 1;
  const Counters counters = figures_of(all, true);
  for (const auto& [name, value] : counters.figures) EXPECT_EQ(known.count(name), 1U) << name;
  for (const Figure& figure : figures()) EXPECT_TRUE(counters.figure(figure.name)) << figure.name;
}

TEST(ProfileFigures, ThoseOfAnUnknownSourceAreNone) {
  CounterReading reading = sample_reading();
  reading.source.name = "another";
  EXPECT_TRUE(figures_of(reading, true).figures.empty());
  const auto none = figures_of(Result<CounterReading>(reading), true);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.failure().message, "another, GH100: no counter of it gives a figure");
}

/// Counts, or says why not.
class CountingEvaluator : public FakeEvaluator {
 public:
  explicit CountingEvaluator(std::optional<std::string> why = {}) : why_(std::move(why)) {}
  Result<CounterReading> count(const Problem&, const Config&, const std::vector<std::string>&,
                               const TrialLimits& limits) override {
    EXPECT_TRUE(limits.cold);
    if (why_) return Failure{Status::unavailable, *why_, {}};
    return sample_reading();
  }

 private:
  std::optional<std::string> why_;
};

ProfileRequest sample_request(FakeEvaluator& evaluator) {
  ProfileRequest request;
  request.problem = Problem::parse("gemm dtype=f32 out=f32 m=64 n=64 k=64").value();
  const Operation& operation = evaluator.catalog().at("gemm");
  const Config fallback = operation.default_config(request.problem, evaluator.device());
  std::mt19937_64 random(1);
  const Space space = operation.space(request.problem, evaluator.device());
  request.ways = {{"default", fallback}, {"winner", space.sample(random)}};
  request.seconds = 0.1;
  request.ceilings = {{"copy_gbps", 3000, 1, "d", "t"}, {"fma_f32_gflops", 50e3, 1, "d", "t"}};
  return request;
}

TEST(Profiler, CountsAfterAllTimesInAnEvaluatorOfItsOwn) {
  FakeEvaluator timing;
  const auto request = sample_request(timing);
  std::vector<std::string> told;
  const Profile found = profile(
      timing,
      [&] {
        told.emplace_back("opened");
        return std::make_unique<CountingEvaluator>();
      },
      request, [&](const std::string& what) { told.push_back(what); });
  ASSERT_EQ(found.ways.size(), 2U);
  for (const ProfiledWay& way : found.ways) {
    ASSERT_TRUE(way.trial.ok()) << way.trial.message;
    ASSERT_TRUE(way.counters);
    EXPECT_GT(way.us.estimate, 0);
  }
  EXPECT_TRUE(found.no_counters.empty());
  EXPECT_GT(found.ways[1].speedup.estimate, 0);
  EXPECT_EQ(found.ways[0].speedup.estimate, 0);
  EXPECT_EQ(told.back(), "opened");  // nothing is timed from here on
}

TEST(Profiler, WithoutCountersSaysWhyAndKeepsTheRest) {
  FakeEvaluator timing;
  const auto request = sample_request(timing);
  const Profile refused = profile(
      timing, [] { return std::make_unique<CountingEvaluator>("the driver forbids it"); }, request,
      [](const std::string&) {});
  EXPECT_EQ(refused.no_counters, "the driver forbids it");
  const std::string text = profile_text(refused);
  EXPECT_NE(text.find("no counters"), std::string::npos);
  EXPECT_NE(text.find("the driver forbids it"), std::string::npos);
  EXPECT_NE(text.find("of the roofline of"), std::string::npos);
  EXPECT_EQ(text.find("read from memory"), std::string::npos);
  const auto json = profile_json(refused);
  EXPECT_EQ(json.at("no_counters"), "the driver forbids it");
  EXPECT_FALSE(json.at("ways").at(0).contains("counters"));
  const Profile died = profile(
      timing,
      []() -> std::unique_ptr<Evaluator> {
        throw Error(Failure{Status::crash, "the process died", {}});
      },
      request, [](const std::string&) {});
  EXPECT_EQ(died.no_counters, "the process died");
  EXPECT_TRUE(died.ways[0].trial.ok());
}

TEST(Profiler, TellsFiguresBesideTheRoofline) {
  FakeEvaluator timing;
  const Profile found = profile(
      timing, [] { return std::make_unique<CountingEvaluator>(); }, sample_request(timing),
      [](const std::string&) {});
  const std::string text = profile_text(found);
  for (const std::string part :
       {"default", "winner", "roofline", "read from memory", "61.0 MiB", "occupancy reached",
        "44 %", "bank conflicts", "waits for other warps at barriers", "CUPTI 13.0, GH100, 9 runs",
        "limited by"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("through L2"), std::string::npos);  // not counted here
  const auto way = profile_json(found).at("ways").at(0);
  EXPECT_EQ(way.at("counters").at("figures").at("memory_read_bytes"), 64e6);
  EXPECT_FALSE(way.at("counters").at("figures").contains("l2_bytes"));
  EXPECT_EQ(way.at("usage").at(0).at("resource"), "memory bandwidth");
}

}  // namespace
}  // namespace greta::test::profile_test
