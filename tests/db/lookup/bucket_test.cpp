// Protects: problems of a bucket share a lookup and, with the same configuration, every compiled
// kernel.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::bucket_test {
namespace {

Problem bucket(const Problem& problem) {
  return kernels::bucket(built_in(problem.op), problem);
}

using test::card;
using test::gemm;

TEST(Bucket, RoundsWhatVariesAtRunTimeAndNothingElse) {
  EXPECT_EQ(bucket(gemm(517, 4097, 11008)), gemm(576, 4097, 11008));
  EXPECT_EQ(bucket(gemm(1024, 64, 64)), gemm(1024, 64, 64));
  for (std::int64_t m = 1; m <= 8; ++m) EXPECT_EQ(bucket(gemm(m, 64, 64)), gemm(m, 64, 64));
  EXPECT_EQ(bucket(gemm(9, 64, 64)), gemm(16, 64, 64));
  const std::int64_t huge = (std::int64_t{1} << 30) + 1;
  EXPECT_EQ(bucket(gemm(huge, 64, 64)), gemm(huge, 64, 64));
  auto transposed = gemm(517, 64, 64);
  transposed.attributes = {{"layout", "tn"}};
  EXPECT_EQ(bucket(transposed), transposed);
  const auto rounded = [](const std::string& key) {
    return bucket(Problem::parse(key).value()).dims_text();
  };
  EXPECT_EQ(rounded("attention dtype=f16 out=f16 batch=3 heads=33 kv_heads=11 q=1 kv=1000 dim=80"),
            "batch=4 heads=33 kv_heads=11 q=1 kv=1024 dim=80");
  EXPECT_EQ(
      rounded(
          "attention dtype=f16 out=f16 mask=causal batch=1 heads=8 kv_heads=8 q=100 kv=100 dim=64"),
      "batch=1 heads=8 kv_heads=8 q=128 kv=128 dim=64");
  EXPECT_EQ(rounded("kv_update dtype=f16 out=f16 tokens=5 kv_heads=3 dim=80 capacity=1000"),
            "tokens=8 kv_heads=3 dim=80 capacity=1000");
  EXPECT_EQ(rounded("rope dtype=f16 out=f16 tokens=5 heads=3 dim=80 positions=1000"),
            "tokens=8 heads=3 dim=80 positions=1000");
  EXPECT_EQ(rounded("rope_append dtype=f16 out=f16 batch=3 tokens=5 heads=3 kv_heads=3 dim=80 "
                    "positions=1000 capacity=1000"),
            "batch=4 tokens=8 heads=3 kv_heads=3 dim=80 positions=1000 capacity=1000");
  EXPECT_EQ(rounded("embedding dtype=f16 out=f16 tokens=5 vocabulary=32000 dim=4096"),
            "tokens=8 vocabulary=32000 dim=4096");
  EXPECT_EQ(rounded("softmax dtype=f16 out=f16 rows=100 cols=1000"), "rows=128 cols=1000");
  EXPECT_EQ(rounded("argmax dtype=f16 out=i32 rows=100 cols=1000"), "rows=64 cols=1000");
}

// SPLIT divides a device among sequences: what suits 32 leaves half of it idle for 17.
TEST(Bucket, BatchesOfAttentionRoundToAQuarterOfAPowerOfTwo) {
  for (const char* form :
       {"attention dtype=f16 out=f16 batch={} heads=8 kv_heads=8 q=1 kv=1024 dim=80",
        "latent_attention dtype=bf16 out=bf16 batch={} heads=128 q=1 kv=1024 latent=512 rope=64",
        "tree_attention dtype=f16 out=f16 batch={} heads=8 kv_heads=8 q=5 kv=1024 dim=64"}) {
    for (const auto& [batch, to] :
         {std::pair{3, 4}, {9, 16}, {17, 24}, {25, 32}, {33, 40}, {65, 80}, {129, 160}}) {
      const auto problem = Problem::parse(fmt::format(fmt::runtime(form), batch)).value();
      EXPECT_EQ(bucket(problem).dim("batch"), to) << form << batch;
    }
  }
}

// The number of tiles determines the number of rounds of workgroups, and 1.5 rounds take as long as
// two.
TEST(Bucket, RowsOfProductsRoundToAnEighthOfAPowerOfTwo) {
  const auto rounded = [](std::int64_t m) { return bucket(gemm(m, 64, 64)).dim("m"); };
  EXPECT_EQ(rounded(17), 24);
  EXPECT_EQ(rounded(65), 72);
  EXPECT_EQ(rounded(129), 144);
  EXPECT_EQ(rounded(2049), 2304);
  EXPECT_EQ(rounded(2240), 2304);
  EXPECT_EQ(rounded(2304), 2304);
  EXPECT_EQ(rounded(4095), 4096);
  std::set<std::int64_t> all;
  for (std::int64_t m = 1; m <= 16384; ++m) {
    const std::int64_t to = rounded(m);
    EXPECT_GE(to, m);
    EXPECT_LE(to - m, m <= 8 ? 0 : std::max<std::int64_t>(7, m / 8)) << m;
    EXPECT_EQ(rounded(to), to) << m;
    all.insert(to);
  }
  EXPECT_EQ(all.size(), 8 + 1 + 2 + 4 + 8 * 8);  // to 8, 16, 32, 64, and 8 to each power above
}

// A tile for twice the rows that groups have computes as many rows of nothing.
TEST(Bucket, RowsOfGroupsDoToo) {
  for (const char* op : {"grouped_gemm", "quantized_grouped_gemm", "scaled_grouped_gemm"}) {
    const auto rounded = [op](int m) {
      const std::string key = "{} dtype=bf16 out=bf16 groups=60 m={} n=2416 k=1408";
      return bucket(Problem::parse(fmt::format(fmt::runtime(key), op, m)).value()).dims_text();
    };
    EXPECT_EQ(rounded(4480), "groups=60 m=4608 n=2416 k=1408") << op;
    EXPECT_EQ(rounded(2944), "groups=60 m=3072 n=2416 k=1408") << op;
    EXPECT_EQ(rounded(4), "groups=60 m=4 n=2416 k=1408") << op;
    EXPECT_EQ(rounded(5), "groups=60 m=8 n=2416 k=1408") << op;
  }
}

/// Returns a random problem of the bucket of `representative`.
Problem random_member(const Problem& representative, std::mt19937_64& random) {
  Problem member = representative;
  for (std::size_t i = 0; i < member.dims.size(); ++i) {
    const std::int64_t extent = representative.dims[i].second;
    if (extent == 0) continue;  // a flag
    for (int tries = 0; tries < 40; ++tries) {
      Problem changed = member;
      changed.dims[i].second =
          extent / 2 + 1 +
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent + extent / 2));
      if (bucket(changed) == representative) member = changed;
    }
  }
  return member;
}

std::vector<std::string> content_keys(const Problem& problem, const DeviceInfo& device,
                                      const Config& config) {
  std::vector<std::string> keys;
  const auto plan = built_in(problem.op).plan(problem, device, config).value();
  for (const auto& source : plan.sources) {
    keys.push_back(source.content_key(device.compiler, device.architecture));
  }
  return keys;
}

/// Returns a typical size with `length` rows, tokens or queries.
Problem problem_of(const Operation& kernel, const DTypes& types, std::int64_t length) {
  Problem problem = typical_problem(kernel, types);
  for (auto& [name, extent] : problem.dims) {
    for (const char* varying : {"m", "rows", "tokens", "q"}) {
      if (name == varying) extent = length;
    }
  }
  return problem;
}

/// Checks that configurations that are valid for a bucket have the same kernels for its problems.
/// Returns the number of other problems that were compared.
int check_bucket(const Operation& kernel, const DeviceInfo& device, const Problem& representative,
                 std::mt19937_64& random) {
  auto configs = std::vector{kernel.default_config(representative, device)};
  const Space space = kernel.space(representative, device);
  for (int i = 0; i < 5; ++i) configs.push_back(space.sample(random));
  int others = 0;
  for (int i = 0; i < 3; ++i) {
    const Problem member = random_member(representative, random);
    EXPECT_EQ(bucket(member), representative) << member.key();
    others += member == representative ? 0 : 1;
    for (const auto& config : configs) {
      const auto what = member.key() + " with " + config.text();
      EXPECT_TRUE(catalog().valid(member, device, config)) << what;
      if (!catalog().valid(member, device, config)) continue;
      EXPECT_EQ(content_keys(member, device, config), content_keys(representative, device, config))
          << what;
    }
  }
  return others;
}

TEST(Bucket, TokensAreNotRoundedBeyondTheirCache) {
  const auto rounded = [](const std::string& key) {
    return bucket(Problem::parse("kv_update dtype=f32 out=f32 " + key).value()).dims_text();
  };
  EXPECT_EQ(rounded("tokens=24 kv_heads=4 dim=8 capacity=32"),
            "tokens=32 kv_heads=4 dim=8 capacity=32");
  EXPECT_EQ(rounded("tokens=24 kv_heads=4 dim=8 capacity=24"),
            "tokens=24 kv_heads=4 dim=8 capacity=24");
}

TEST(Bucket, WhatIsValidForItHasOneSetOfKernelsInAllOfIt) {
  auto vulkan = card("sm_90", "aa");
  vulkan.backend = Api::vulkan;
  vulkan.language = Language::glsl;
  std::mt19937_64 random(5);
  for (const auto& device : {card("gfx942", "aa"), card("sm_90", "aa"), vulkan}) {
    for (const Operation& kernel : catalog()) {
      int others = 0;
      for (const auto& types : kernel.dtypes) {
        if (types.in != DType::f16) continue;
        for (const std::int64_t length : {1, 4, 16, 64, 512}) {
          const Problem representative = bucket(problem_of(kernel, types, length));
          if (!check_problem(kernel, representative)) continue;
          others += check_bucket(kernel, device, representative, random);
        }
      }
      const auto& extents = kernel.dimensions;
      const bool varies = std::any_of(extents.begin(), extents.end(), [](const auto& extent) {
        return extent.at_run_time.has_value();
      });
      EXPECT_EQ(others > 3, varies) << kernel.name << ' ' << others;
    }
  }
}

}  // namespace
}  // namespace greta::test::bucket_test
