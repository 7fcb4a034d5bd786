// Protects: on NVIDIA GPUs, the default of one query keeps all compute units busy from its first
// round to its last, whatever the numbers of sequences, heads and keys; matrix cores take several
// rows of queries.

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/prior/predicted_config.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"

namespace greta::test::attention_defaults_test {
namespace {

struct Queries {
  std::int64_t batch, heads, kv_heads, keys, dim;
};

Problem problem_of(const Queries& q, DType type = DType::bf16) {
  return test::attention_problem({q.batch, q.heads, q.kv_heads, 1, q.keys, q.dim, false}, type,
                                 type);
}

/// Returns what is answered without a measurement: the static prior may choose another variant, or
/// change values.
Config answer_for(const Problem& problem, const char* architecture = "sm_90") {
  const DeviceInfo device = architecture_info(architecture).value();
  const auto predicted = predicted_config(built_in("attention"), problem, device);
  return predicted ? *predicted : built_in("attention").default_config(problem, device);
}

Config default_of(const Queries& queries, DType type = DType::bf16) {
  return answer_for(problem_of(queries, type));
}

// The slices that searches on an H200 found, or as fast ones
// (results/2026-12-01-nvidia-h200-long-single-queries).
TEST(AttentionDefaults, WorkgroupsOfOneQueryRunAtOnce) {
  constexpr std::int64_t units = 132, threads_of_unit = 512;
  for (const Queries& q : {Queries{7, 4, 4, 29696, 128},
                           {7, 8, 8, 29440, 128},
                           {2, 8, 8, 9000, 64},
                           {16, 16, 16, 1200, 96},
                           {3, 32, 32, 5000, 128},
                           {1, 32, 32, 4096, 128},
                           {1, 1, 1, 30000, 128},
                           {132, 1, 1, 4000, 64}}) {
    const Config c = default_of(q);
    ASSERT_EQ(c.variant, "decode") << problem_of(q).key();
    EXPECT_EQ(c["AHEAD"], 1);
    const std::int64_t workgroups = q.batch * q.kv_heads * c["SPLIT"];
    EXPECT_LE(workgroups * c["THREADS"], units * threads_of_unit) << c.text();
    // Of a KV head alone, slices cannot occupy more.
    EXPECT_GE(workgroups, std::min(units * 2 / 3, q.batch * q.kv_heads * 48)) << c.text();
    const std::int64_t round = c["THREADS"] / c["LANES"] * c["UNROLL"];
    EXPECT_LE(round, q.keys / c["SPLIT"]) << "loads of no keys: " << c.text();
  }
}

TEST(AttentionDefaults, FewKeysAndManySequencesHaveNoSlices) {
  EXPECT_EQ(default_of({1, 8, 8, 100, 64})["SPLIT"], 1);
  EXPECT_EQ(default_of({64, 32, 32, 1000, 128})["SPLIT"], 1);
}

// A window hides all other keys from a query.
TEST(AttentionDefaults, SlicesAreOfTheKeysThatAQuerySees) {
  Problem windowed = problem_of({1, 8, 8, 30000, 128});
  windowed.attributes = {{"mask", "causal"}, {"window", "128"}};
  const Config config = answer_for(windowed);
  ASSERT_EQ(config.variant, "decode");
  EXPECT_LT(config["SPLIT"], default_of({1, 8, 8, 30000, 128})["SPLIT"]);
}

TEST(AttentionDefaults, MatrixCoresTakeSeveralRowsOfQueries) {
  EXPECT_EQ(default_of({16, 8, 4, 12000, 128}).variant, "matrix");
  EXPECT_EQ(default_of({16, 8, 8, 12000, 128}).variant, "decode");
  EXPECT_EQ(default_of({16, 8, 4, 12000, 128}, DType::f32).variant, "decode");
  // Two rows are measured on sm_90 alone.
  const Problem two = problem_of({16, 8, 4, 12000, 128}),
                four = problem_of({16, 16, 4, 12000, 128});
  EXPECT_EQ(built_in("attention").default_config(two, architecture_info("sm_80").value()).variant,
            "decode");
  EXPECT_EQ(built_in("attention").default_config(four, architecture_info("sm_80").value()).variant,
            "matrix");
}

}  // namespace
}  // namespace greta::test::attention_defaults_test
