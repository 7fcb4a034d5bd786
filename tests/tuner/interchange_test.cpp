// Protects: the translation of other tools' files, row by row, with a report of rows that can't be
// translated.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/layers.hpp"
#include "tuner/interchange/t4.hpp"
#include "tuner/interchange/tunableop.hpp"

namespace greta::test::interchange_test {
namespace {

TunableOpFile read(const std::string& text) {
  std::istringstream in(text);
  return read_tunableop(in);
}

TEST(TunableOp, RowsBecomeProblemsInRows) {
  const auto file = read(
      "Validator,PT_VERSION,2.8.0\n"
      "Validator,ROCM_VERSION,6.0.0.0-12969-1544e39\n"
      "GemmTunableOp_float_NT,nt_25088_4096_64,Gemm_Rocblas_1219,1.262\n"
      "GemmTunableOp_Half_TN,tn_4096_16_1024_ld_1024_1024_4096,Default,0.033\n"
      "GemmAndBiasTunableOp_BFloat16_TN,tn_100_7_64_ld_64_64_100\n");
  ASSERT_EQ(file.peers.size(), 3U);
  EXPECT_TRUE(file.untranslated.empty());
  EXPECT_EQ(file.assumed_packed, 1U);
  EXPECT_EQ(file.peers[0].problem.key(), "gemm dtype=f32 out=f32 layout=tn m=4096 n=25088 k=64");
  EXPECT_DOUBLE_EQ(file.peers[0].us, 1262);
  EXPECT_EQ(file.peers[0].solution, "Gemm_Rocblas_1219");
  EXPECT_EQ(file.peers[1].problem.key(), "gemm dtype=f16 out=f16 layout=nt m=16 n=4096 k=1024");
  EXPECT_EQ(file.peers[2].problem.key(),
            "gemm dtype=bf16 out=bf16 layout=nt epilogue=bias m=7 n=100 k=64");
  EXPECT_TRUE(std::isnan(file.peers[2].us));
  EXPECT_EQ(validators_from_text(file.peers[0].circumstances), file.validators);
  EXPECT_EQ(file.validators[1].second, "6.0.0.0-12969-1544e39");
}

TEST(TunableOp, WhatDoesNotCarryOverIsSaidForEachRow) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"GemmTunableOp_double_NN,nn_8_8_8,Default,1", "double"},
      {"GemmTunableOp_tf32_NN,nn_8_8_8,Default,1", "tf32"},
      {"GemmTunableOp_float_NN,nn_8_8_8_ld_4_8_8,Default,1", "ldb 4"},
      {"GemmTunableOp_float_NN,nn_8_8,Default,1", "parameters"},
      {"GemmTunableOp_float_NN,nn_8_-8_8,Default,1", "parameters"},
      {"GemmTunableOp_float_NN,nn_8_99999999999999_8,Default,1", "n"},
      {"GemmTunableOp_float_NN,nn_8_8_8,Default,fast", "time"},
      {"GemmStridedBatchedTunableOp_Half_NN,nn_8_8_8_B_4_ld_8_8_8,Default,1", "distances"},
      {"ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_Half_TN,tn_8_8_8,Default,1", "8-bit"},
      {"Softmax,8,Default,1", "not a GEMM"},
      {"just text", "no row"}};
  for (const auto& [row, reason] : rows) {
    const auto file = read("Validator,PT_VERSION,2.8.0\n" + row + "\n");
    ASSERT_EQ(file.untranslated.size(), 1U) << row;
    EXPECT_EQ(file.untranslated[0].row, "line 2");
    EXPECT_NE(file.untranslated[0].reason.find(reason), std::string::npos)
        << row << ": " << file.untranslated[0].reason;
  }
}

TEST(TunableOp, ProblemsComeBackAsTheyWent) {
  for (const auto* key :
       {"gemm dtype=f32 out=f32 m=5 n=6 k=7", "gemm dtype=f16 out=f16 layout=nt m=5 n=6 k=7",
        "gemm dtype=bf16 out=bf16 layout=tn m=5 n=6 k=7",
        "gemm dtype=f16 out=f16 layout=nt epilogue=bias m=5 n=6 k=7",
        "gemm dtype=f16 out=f16 layout=tt lda=\"8\" ldb=\"9\" ldc=\"10\" m=5 n=6 k=7"}) {
    const auto fields = tunableop_fields(Problem::parse(key).value());
    ASSERT_TRUE(fields) << key;
    const auto file = read(fields->first + "," + fields->second + "\n");
    ASSERT_EQ(file.peers.size(), 1U) << file.untranslated[0].reason;
    EXPECT_EQ(file.peers[0].problem.key(), key);
    EXPECT_EQ(file.assumed_packed, 0U);
  }
  for (const auto* key :
       {"gemm dtype=f16 out=f32 m=5 n=6 k=7", "gemm dtype=f16 out=f16 epilogue=silu m=5 n=6 k=7",
        "gemm dtype=f16 out=f16 alpha=\"2\" m=5 n=6 k=7",
        "softmax dtype=f32 out=f32 rows=5 cols=6"}) {
    EXPECT_FALSE(tunableop_fields(Problem::parse(key).value())) << key;
  }
}

TEST(T4, TrialsBecomeResults) {
  StoredSession session;
  session.problem = Problem::parse("gemm dtype=f32 out=f32 m=8 n=8 k=8").value();
  Trial good;
  good.config = {"tiled", {{"BM", 64}, {"BN", 32}}};
  good.problem_key = session.problem.key();
  good.measurement.samples_us = {1000, 2000};
  good.measurement.median_us = 1500;
  good.compile_s = 0.5;
  good.recorded_utc = "2026-11-20T12:00:00Z";
  Trial wrong = good;
  wrong.failure = Status::correctness;
  Trial crashed = good;
  crashed.failure = Status::crash;
  Trial elsewhere = good;
  elsewhere.problem_key = "gemm dtype=f32 out=f32 m=4 n=8 k=8";
  const auto json = t4_json(session, {good, wrong, crashed, elsewhere});
  EXPECT_EQ(json["schema_version"], "1.1.0");
  EXPECT_EQ(json["metadata"]["timeunit"], "milliseconds");
  ASSERT_EQ(json["results"].size(), 3U);
  const auto& first = json["results"][0];
  EXPECT_EQ(first["configuration"], (nlohmann::json{{"variant", "tiled"}, {"BM", 64}, {"BN", 32}}));
  EXPECT_EQ(first["times"]["runtimes"], (nlohmann::json{1.0, 2.0}));
  // The names that autotuning_methodology adds up, and the name in the schema.
  for (const char* name : {"compilation", "benchmark", "framework", "search_algorithm",
                           "validation", "compilation_time"}) {
    EXPECT_TRUE(first["times"][name].is_number()) << name;
  }
  EXPECT_EQ(first["times"]["compilation"], 500);
  EXPECT_EQ(first["measurements"][0],
            (nlohmann::json{{"name", "time"}, {"value", 1.5}, {"unit", "ms"}}));
  EXPECT_EQ(first["invalidity"], "correct");
  EXPECT_EQ(json["results"][1]["invalidity"], "correctness");
  EXPECT_EQ(json["results"][1]["correctness"], 0);
  EXPECT_EQ(json["results"][2]["invalidity"], "runtime");
  Trial broken = good, refused = good;
  broken.failure = Status::compile;
  refused.failure = Status::constraints;
  const auto failed = t4_json(session, {broken, refused})["results"];
  EXPECT_EQ(failed[0]["measurements"][0]["value"], "CompilationFailedConfig");
  EXPECT_EQ(failed[1]["measurements"][0]["value"], "InvalidConfig");
  EXPECT_EQ(json["results"][2]["measurements"],
            (nlohmann::json{{{"name", "time"}, {"value", "RuntimeFailedConfig"}, {"unit", "ms"}}}));
}

}  // namespace
}  // namespace greta::test::interchange_test
