// Protects: accepted slowdowns. The file is read or refused with the place of the mistake; a
// slowdown is accepted up to its limit until its last day, on its device, and nothing else is.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/bench/acceptance.hpp"

namespace greta::test::bench_acceptance_test {
namespace {

class BenchAcceptance : public testing::Test {
 protected:
  Result<std::vector<Acceptance>> read(const std::string& text) {
    const auto file = folder_.path() / "a.json";
    std::ofstream(file) << text;
    return read_acceptances(file);
  }
  test::TemporaryFolder folder_;
};

std::string entry(const std::string& key, const std::string& value) {
  std::string text = R"({"accepted": [{)";
  const std::vector<std::pair<std::string, std::string>> good{{"benchmark", "\"gemm *\""},
                                                              {"device", "\"NVIDIA *\""},
                                                              {"slower", "\"12 %\""},
                                                              {"reason", "\"driver\""},
                                                              {"until", "\"2026-12-31\""}};
  for (const auto& [name, word] : good) {
    if (name == key && value.empty()) continue;
    text += (text.ends_with('{') ? "\"" : ", \"") + name + "\": " + (name == key ? value : word);
  }
  return text + "}]}";
}

TEST_F(BenchAcceptance, IsReadFromAFile) {
  const auto read_ones = read(entry("", ""));
  ASSERT_TRUE(read_ones) << read_ones.failure().message;
  ASSERT_EQ(read_ones->size(), 1U);
  const Acceptance& one = read_ones->front();
  EXPECT_EQ(one.benchmark, "gemm *");
  EXPECT_EQ(one.device, "NVIDIA *");
  EXPECT_DOUBLE_EQ(one.most, 0.12);
  EXPECT_EQ(one.reason, "driver");
  EXPECT_EQ(one.until, "2026-12-31");
  EXPECT_EQ(read(entry("device", ""))->front().device, "*");
  EXPECT_TRUE(read(R"({"accepted": []})")->empty());
}

TEST_F(BenchAcceptance, MistakesAreToldWithTheirPlace) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"{", "a.json: is not JSON: parse error"},
           {"[]", "a.json: is not a JSON object"},
           {"{}", "a.json: accepted: is missing"},
           {R"({"accepted": 7})", "a.json: accepted: is not a list"},
           {R"({"accept": []})", "a.json: accept: unknown key"},
           {R"({"accepted": [7]})", "a.json: accepted[0]: is not an object"},
           {R"({"accepted": [], "accepted": []})", "a.json: accepted: is given twice"},
           {entry("benchmark", ""), "a.json: accepted[0].benchmark: is missing"},
           {entry("reason", ""), "a.json: accepted[0].reason: is missing"},
           {entry("reason", "\" \""), "a.json: accepted[0].reason: is empty"},
           {entry("until", ""), "a.json: accepted[0].until: is missing"},
           {entry("until", "\"2026-02-30\""), "accepted[0].until: 2026-02-30: must be a date"},
           {entry("until", "\"soon\""), "accepted[0].until: soon: must be a date"},
           {entry("until", "\"2026-1-1\""), "accepted[0].until: 2026-1-1: must be a date"},
           {entry("slower", "\"12\""), "accepted[0].slower: 12: must be a percentage"},
           {entry("slower", "\"-1 %\""), "accepted[0].slower: -1 %: must be a percentage"},
           {entry("slower", "\"12 % or so\""), "accepted[0].slower: 12 % or so: must be"},
           {entry("slower", "12"), "accepted[0].slower: must be text"},
           {entry("device", "\"x\", \"limit\": 3"), "accepted[0].limit: unknown key"}}) {
    const auto failed = read(text);
    ASSERT_FALSE(failed) << text;
    EXPECT_NE(failed.failure().message.find(expected), std::string::npos)
        << text << " gave " << failed.failure().message;
    EXPECT_EQ(failed.failure().message.find('\n'), std::string::npos);
  }
  EXPECT_NE(read_acceptances("/none.json").failure().message.find("No such file"),
            std::string::npos);
}

/// Rows m=0, 1, … that became slower by these factors, with intervals of ± 1 %.
BaselineComparison slowed(const std::vector<double>& factors) {
  BaselineComparison comparison;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    ResultChange row;
    row.fresh.subject.problem =
        Problem::parse("gemm dtype=f32 out=f32 m=" + std::to_string(i) + " n=1 k=1").value();
    row.fresh.subject.backend = "hip";
    row.fresh.subject.device = "NVIDIA H200";
    row.change = {.low = 0.99 * factors[i], .high = 1.01 * factors[i], .estimate = factors[i]};
    row.finding = judge(row.change, 0.05);
    comparison.changes.push_back(row);
  }
  return comparison;
}

Acceptance acceptance(const std::string& benchmark, double most, const std::string& until) {
  return {.benchmark = benchmark, .most = most, .reason = "driver", .until = until};
}

constexpr auto today = "2026-11-25";

TEST_F(BenchAcceptance, AcceptsSlowerRowsUpToItsLimit) {
  using enum AcceptanceUse::State;
  auto comparison = slowed({1.1, 1.2, 1.0, 0.8, 1.12});
  ASSERT_EQ(comparison.regressions(), 3);
  const auto uses = accept(comparison,
                           {acceptance("gemm f32 m=[04] *", 0.12, today),  // 12 % itself is kept
                            acceptance("gemm f32 m=1 *", 0.12, "2026-12-31"),
                            acceptance("gemm f32 m=2 *", 0.12, "2026-12-31"),
                            acceptance("softmax *", 0.12, "2026-12-31")},
                           today);
  EXPECT_EQ(comparison.regressions(), 1);
  EXPECT_EQ(uses[0].state, used);
  EXPECT_EQ(uses[0].rows, 2U);
  EXPECT_EQ(uses[1].state, exceeded);
  EXPECT_EQ(uses[2].state, unused);
  EXPECT_EQ(uses[3].state, unused);
  EXPECT_EQ(acceptance_text(uses[0]), "");
  EXPECT_EQ(acceptance_text(uses[1]),
            "accepted \"gemm f32 m=1 *\" on \"*\" up to 12 % is exceeded (driver)");
  EXPECT_NE(acceptance_text(uses[2]).find("is unused: no row is slower"), std::string::npos);
  EXPECT_NE(acceptance_text(uses[3]).find("is unused: no row matches"), std::string::npos);
  // What is not accepted comes first, and then what is.
  EXPECT_EQ(comparison.changes[0].fresh.subject.problem.dims[0].second, 1);
  EXPECT_EQ(comparison.changes[1].acceptance->reason, "driver");
}

TEST_F(BenchAcceptance, ExpiresAfterItsLastDayAndIsOfItsDevice) {
  using enum AcceptanceUse::State;
  auto comparison = slowed({1.1});
  auto uses = accept(comparison, {acceptance("*", 1, "2026-11-24")}, today);
  EXPECT_EQ(uses[0].state, expired);
  EXPECT_EQ(acceptance_text(uses[0]), "accepted \"*\" on \"*\" expired on 2026-11-24 (driver)");
  Acceptance other = acceptance("*", 1, today);
  other.device = "NVIDIA H100";
  uses = accept(comparison, {other}, today);
  EXPECT_EQ(uses[0].state, unused);
  EXPECT_EQ(comparison.regressions(), 1);
  other.device = "NVIDIA H*";
  accept(comparison, {other}, today);
  EXPECT_EQ(comparison.regressions(), 0);
}

TEST_F(BenchAcceptance, WrongResultsAreNeverAccepted) {
  auto comparison = slowed({1.1});
  comparison.changes[0].broke = true;
  comparison.changes[0].fresh.failure = Failure{Status::correctness, "wrong", {}};
  accept(comparison, {acceptance("*", 10, today)}, today);
  EXPECT_EQ(comparison.regressions(), 1);
}

}  // namespace
}  // namespace greta::test::bench_acceptance_test
