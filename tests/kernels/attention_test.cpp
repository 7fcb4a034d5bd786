// Protects: attention kernels are correct on every device, and problems that no variant supports
// are explained.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"
#include "tests/kernels/attention_runs.hpp"

namespace greta::test::attention_test {
namespace {

using test::attention_inputs;
using test::attention_problem;
using test::AttentionShape;
using test::expect_right_attention;
using test::run_attention;
using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(bound)));
}

/// Returns a small problem with partial tiles in every dimension. The types alternate with the
/// number.
Problem random_problem(std::size_t number, Random& random, bool few_queries) {
  constexpr std::int64_t dims[] = {64, 80, 96, 128, 40, 256, 16, 64};
  AttentionShape s;
  s.batch = 1 + below(random, 2);
  s.kv_heads = 1 + below(random, 2);
  s.heads = s.kv_heads * (1 + below(random, 3));
  s.queries = few_queries ? 1 + below(random, 3) : 1 + below(random, 90);
  s.keys = s.queries + below(random, few_queries ? 300 : 100);
  s.dim = dims[below(random, 8)];
  s.causal = below(random, 2) == 1;
  if (below(random, 3) == 0) s.v_dim = dims[below(random, 8)];
  const auto& types = built_in("attention").dtypes;
  const auto [in, out] = types[number % types.size()];
  return attention_problem(s, in, out, below(random, 4) == 0 ? "0.25" : "auto");
}

/// Returns numbers of valid keys per sequence: all, few, or any number.
std::vector<std::int64_t> random_lengths(const Problem& problem, Random& random) {
  const std::int64_t least = below(random, 2) == 0 ? 0 : problem.dim("q");
  const std::int64_t most = problem.dim("kv");
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < problem.dim("batch"); ++i) {
    const std::int64_t kind = below(random, 3);
    lengths.push_back(kind == 0   ? most
                      : kind == 1 ? least
                                  : least + below(random, most - least + 1));
  }
  return lengths;
}

const Variant& variant_of(const std::string& name) {
  const auto& list = built_in("attention").variants;
  return *std::find_if(list.begin(), list.end(), [&](const Variant& v) { return v.name == name; });
}

/// One variant on one device: GPUs, the CPU through Vulkan, and the GPUs that hip-host emulates.
class AttentionVariant : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  Device& device_ = test::device(std::get<0>(GetParam()));
  const DeviceInfo& info_ = device_.info();
  const Variant& variant_ = variant_of(std::get<1>(GetParam()));
};

// Covers more than the property test of all operations: any number of valid keys and any head size.
TEST_P(AttentionVariant, IsRightForRandomLengths) {
  Random random(static_cast<unsigned>(info_.index) + 1);
  int right = 0;
  for (std::size_t number = 0; number < 5; ++number) {
    for (int tries = 0; tries < 20; ++tries) {  // the variant may not support all types
      const Problem problem = random_problem(number, random, variant_.name == "decode");
      const Space space({variant_.space(built_in("attention").shape(problem), info_)});
      if (space.count() == 0) continue;
      expect_right_attention(device_, problem, space.sample(random),
                             random_lengths(problem, random), number);
      ++right;
      break;
    }
  }
  // Matrix cores support the four pairs of types with 16-bit inputs. On other devices than Hopper,
  // warpgroups are tested by attention_warpgroup_test.cpp.
  const bool hopper = info_.language == Language::hip && has_warpgroup_products(info_.architecture);
  EXPECT_EQ(right, variant_.name == "warpgroups"     ? (hopper ? 4 : 0)
                   : variant_.name != "matrix"       ? 5
                   : info_.matrix_operations.empty() ? 0
                                                     : 4);
}

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const Variant& variant : built_in("attention").variants) {
    // The vendor's library is not open here; cli.Vendor verifies it.
    if (variant.name != vendor_variant) names.push_back(variant.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionVariant,
                         ::testing::Combine(::testing::ValuesIn(test::usable_devices()),
                                            ::testing::ValuesIn(variant_names())),
                         [](const auto& instance) {
                           return test::device_name(std::get<0>(instance.param)) + "_" +
                                  std::get<1>(instance.param);
                         });

class AttentionKernel : public ::testing::TestWithParam<std::string> {
 protected:
  /// Returns the first valid default of a variant; nothing if it does not support the problem.
  std::optional<Config> default_of(const Variant& variant, const Problem& problem) const {
    const ProblemShape shape = built_in("attention").shape(problem);
    for (const Config& config : variant.defaults(shape, info_)) {
      if (!rejects(variant.space(shape, info_), config)) return config;
    }
    return std::nullopt;
  }

  /// Returns the default of each variant that supports a problem. decode needs few queries, and
  /// may leave several rows of a KV head to matrix cores; matrix needs inputs that the device's
  /// matrix operations support.
  std::vector<Config> defaults_of(const Problem& problem) const {
    std::vector<Config> configs;
    for (const Variant& variant : built_in("attention").variants) {
      if (variant.name == vendor_variant) continue;  // has no default
      const auto config = default_of(variant, problem);
      const bool multiplies =
          std::any_of(info_.matrix_operations.begin(), info_.matrix_operations.end(),
                      [&](const MatrixOperation& o) { return o.input == problem.dtype; });
      const bool few = problem.dim("q") <= 8;
      const bool hopper =
          info_.language == Language::hip && has_warpgroup_products(info_.architecture);
      const std::int64_t rows = problem.dim("q") * problem.dim("heads") / problem.dim("kv_heads");
      const bool packs = info_.language == Language::hip && multiplies && rows >= (hopper ? 2 : 4);
      if (variant.name == "decode" && few && packs && !config) continue;
      const bool halves = multiplies && problem.dtype != DType::f32;
      EXPECT_EQ(config.has_value(), variant.name == "decode"       ? few
                                    : variant.name == "warpgroups" ? halves && hopper && !few
                                    : variant.name == "matrix"     ? halves
                                                                   : true)
          << variant.name << " of " << problem.key();
      if (config) configs.push_back(*config);
    }
    return configs;
  }

  Device& device_ = test::device(GetParam());
  const DeviceInfo& info_ = device_.info();
};

// Without keys the result is zero. With one key it is that key's value.
TEST_P(AttentionKernel, LengthsOfNothingAndOfOneKey) {
  for (const bool causal :
       {false, true}) {  // with fewer keys than queries, the first queries see none
    const Problem problem = attention_problem({3, 2, 1, 2, 70, 64, causal}, DType::f16, DType::f16);
    for (const Config& config : defaults_of(problem)) {
      expect_right_attention(device_, problem, config, {0, 1, 70});
    }
  }
}

// If there are fewer keys than the four causal queries, the first queries see none. The number of
// keys is limited to the capacity, whatever the lengths are.
TEST_P(AttentionKernel, CausalLengthsBelowTheQueriesAndAboveTheCapacity) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const DType type : {DType::f16, DType::f32}) {
    const Problem problem = attention_problem({7, 2, 1, 4, 70, 64, true}, type, type);
    for (const Variant& variant : built_in("attention").variants) {
      const auto config = default_of(variant, problem);
      if (config) expect_right_attention(device_, problem, *config, {0, 1, 2, 70, 71, most, -1});
    }
  }
}

/// The prefetching loads of decode's loop have nothing to load for a slice without keys.
TEST_P(AttentionKernel, DecodeLoadsAheadOfAnyLength) {
  const Problem problem = attention_problem({3, 2, 1, 1, 170, 64, false}, DType::f16, DType::f16);
  const Config config{
      "decode",
      {{"THREADS", 64}, {"LANES", 8}, {"VEC", 8}, {"UNROLL", 1}, {"AHEAD", 1}, {"SPLIT", 8}}};
  expect_right_attention(device_, problem, config, {0, 1, 170});
}

/// The keys are divided into any number of slices, also by far more than a short sequence has keys.
TEST_P(AttentionKernel, DecodeJoinsAnyNumberOfSlices) {
  const Problem problem = attention_problem({4, 6, 2, 2, 790, 64, true}, DType::f16, DType::f16);
  for (const int split : {3, 6, 24, 48}) {
    const Config config{
        "decode",
        {{"THREADS", 64}, {"LANES", 8}, {"VEC", 8}, {"UNROLL", 1}, {"AHEAD", 0}, {"SPLIT", split}}};
    expect_right_attention(device_, problem, config, {0, 1, 47, 790});
  }
}

/// One workgroup can't hold all heads of a KV head: 37 are split into three parts of 13, of which
/// the last has 11, and 18 of each of three tokens into four.
TEST_P(AttentionKernel, DecodeSharesManyHeadsBetweenWorkgroups) {
  for (const AttentionShape& shape :
       {AttentionShape{2, 37, 1, 1, 170, 16, false}, AttentionShape{1, 36, 2, 3, 100, 24, true}}) {
    const Problem problem = attention_problem(shape, DType::f16, DType::f16);
    EXPECT_EQ(built_in("attention").default_config(problem, info_).variant,
              info_.language == Language::hip ? "matrix" : "decode");
    for (const int split : {1, 4}) {
      const Config config{"decode",
                          {{"THREADS", 64},
                           {"LANES", 8},
                           {"VEC", 1},
                           {"UNROLL", 1},
                           {"AHEAD", 0},
                           {"SPLIT", split}}};
      expect_right_attention(device_, problem, config);
    }
  }
}

// Scores of several hundred: all exponentials except the greatest are 0, and they overflow unless
// the maximum is subtracted first.
TEST_P(AttentionKernel, LargeScores) {
  for (const auto& [in, queries] :
       {std::pair{DType::f32, 3}, {DType::f16, 3}, {DType::f16, 40}, {DType::bf16, 40}}) {
    const Problem problem = attention_problem({1, 1, 1, queries, 150, 64, true}, in, in);
    auto inputs = attention_inputs(problem, 2);
    for (std::size_t i = 0; i < inputs[0].spec.elements(); ++i) {
      store_element(in, inputs[0].data.data(), i, 64 * inputs[0].at(i));
    }
    const auto reference = built_in("attention").reference(problem, inputs, 1);
    for (const Config& config : defaults_of(problem)) {
      SCOPED_TRACE(problem.key() + " | " + config.text());
      const Verdict verdict = reference->check(run_attention(device_, problem, config, inputs));
      EXPECT_TRUE(verdict.passed) << verdict.detail;
    }
  }
}

/// Errors before attention must stay visible: a query that is NaN gives NaN, also as its
/// log-sum-exp, and affects no other.
TEST_P(AttentionKernel, NanStaysNan) {
  constexpr std::size_t heads = 2, dim = 64,
                        broken = 1 * heads + 1;  // the second query's second head
  for (const auto& [in, queries] :
       {std::pair{DType::f16, 3}, {DType::bf16, 40}, {DType::f32, 40}}) {
    Problem problem =
        attention_problem({1, heads, heads, queries, 150, dim, false}, in, DType::f32);
    problem.attributes.emplace_back("lse", "stored");
    const auto inputs = attention_inputs(problem, 4);
    auto changed = inputs;
    store_element(in, changed[0].data.data(), broken * dim + 5,
                  std::numeric_limits<double>::quiet_NaN());
    for (const Config& config : defaults_of(problem)) {
      SCOPED_TRACE(problem.key() + " | " + config.text());
      const auto sound = run_attention(device_, problem, config, inputs);
      const auto outputs = run_attention(device_, problem, config, changed);
      ASSERT_FALSE(sound.empty() || outputs.empty());
      for (const std::size_t tensor : {0, 1}) {
        const HostTensor &got = outputs[tensor], &whole = sound[tensor];
        const std::size_t of_row = tensor == 0 ? dim : 1;
        for (std::size_t i = 0; i < got.spec.elements(); ++i) {
          const bool nan = i / of_row == broken;
          ASSERT_TRUE(nan ? std::isnan(got.at(i)) : got.at(i) == whole.at(i))
              << got.spec.name << ", element " << i << ": " << got.at(i);
        }
      }
    }
  }
}

/// A query that sees no key gives zeros. `decode` does so even where others see
/// an infinite value; matrix cores multiply it by a weight of 0.
TEST_P(AttentionKernel, WithoutKeysOutputsAreZeros) {
  constexpr std::size_t heads = 2, dim = 64;
  for (const DType in : {DType::f16, DType::f32}) {
    const Problem problem = attention_problem({1, heads, heads, 2, 1, dim, true}, in, DType::f32);
    auto inputs = attention_inputs(problem, 4);
    ASSERT_EQ(inputs[2].spec.name, "V");
    store_element(in, inputs[2].data.data(), 3, std::numeric_limits<double>::infinity());
    const Config config{
        "decode",
        {{"THREADS", 64}, {"LANES", 8}, {"VEC", 4}, {"UNROLL", 1}, {"AHEAD", 0}, {"SPLIT", 1}}};
    SCOPED_TRACE(problem.key());
    const auto outputs = run_attention(device_, problem, config, inputs);
    ASSERT_FALSE(outputs.empty());
    for (std::size_t i = 0; i < heads * dim; ++i) ASSERT_EQ(outputs[0].at(i), 0) << i;
  }
}

TEST_P(AttentionKernel, EqualInputsGiveEqualBits) {
  const Problem problem = attention_problem({1, 4, 2, 2, 1100, 64, true}, DType::f16, DType::f32);
  const auto inputs = attention_inputs(problem, 3, {1090});
  for (Config config : defaults_of(problem)) {
    for (auto& [name, value] : config.values) {
      if (name == "SPLIT") value = 8;
    }
    const auto once = run_attention(device_, problem, config, inputs);
    const auto again = run_attention(device_, problem, config, inputs);
    ASSERT_FALSE(once.empty() || again.empty());
    EXPECT_EQ(once[0].data, again[0].data) << config.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionKernel, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

TEST(Attention, NamesTheConstraintOfBadShapes) {
  const auto why = [](const AttentionShape& shape) {
    const auto checked = built_in("attention").check(attention_problem(shape));
    return checked ? "good" : checked.failure().message;
  };
  EXPECT_EQ(why({1, 32, 8, 1, 100, 128, false}), "good");
  EXPECT_EQ(why({1, 32, 5, 1, 100, 128, false}), "kv_heads 5: must divide the 32 heads");
  EXPECT_EQ(why({1, 4, 4, 1, 100, 100, false}), "dim 100: must be a multiple of 8");
  EXPECT_EQ(why({1, 4, 4, 100, 99, 64, true}),
            "kv 99: causal attention needs at least the 100 keys of its queries");
  EXPECT_EQ(why({1, 4, 4, 100, 99, 64, false}), "good");
  constexpr std::int64_t large = 2147483647;
  EXPECT_EQ(why({large, large, 1, large, 1, 64, false}),
            "q 2147483647: batch x heads x q must not exceed 2147483647");
  EXPECT_EQ(why({1 << 22, 1, 1, 1, 1 << 21, 64, false}),
            "kv 2097152: batch x kv_heads x kv must not exceed 2147483647");
  EXPECT_EQ(why({1, 1, 1, large, large, 64, false}), "good");
}

/// On the CPU through Vulkan, where tiles are small.
TEST(Attention, NamesEveryConstraintInTheWayOfAHeadAndWhichWouldRun) {
  const Operation& kernel = built_in("attention");
  const Problem problem = attention_problem({1, 6, 3, 37, 41, 72, false}, DType::f16, DType::f16);
  try {
    kernel.default_config(problem, test::device().info());
    FAIL() << "heads of 72 run here";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.status(), Status::constraints);
    EXPECT_NE(message.find("vector: lanes: 4 x LANES must divide dim, 72"), message.npos)
        << message;
    EXPECT_NE(message.find("or code_size: "), message.npos) << message;
    EXPECT_NE(message.find("; dim 64 or 80 would"), message.npos) << message;
  }
}

/// On the CPU through Vulkan, whose subgroups are small.
TEST(LatentAttention, LongLatentsRunWithoutMatrixInstructions) {
  const Operation& kernel = built_in("latent_attention");
  for (const char* latent : {"528", "768", "928"}) {
    const auto problem = make_problem(
        kernel, {{{"heads", "16"}, {"q", "1"}, {"kv", "64"}, {"latent", latent}, {"rope", "64"}},
                 "f16",
                 ""});
    ASSERT_TRUE(problem);
    EXPECT_EQ(kernel.default_config(*problem, test::device().info()).variant, "vector") << latent;
  }
}

// Beyond, differences of scores are rounding errors, and weights zeros or NaN.
TEST(Attention, ScalesAreSmallEnoughForExponentsOfTwo) {
  const auto problem = [](const char* scale) {
    return make_problem(built_in("attention"),
                        {{{"heads", "1"}, {"q", "1"}, {"dim", "64"}, {"scale", scale}}, "", ""});
  };
  EXPECT_TRUE(problem("65536"));
  for (const char* bad : {"65537", "1e30", "3e38", "0", "-1", "1e-300", "x"})
    EXPECT_FALSE(problem(bad)) << bad;
}

TEST(Attention, CountsTheKeysThatQueriesSee) {
  const auto flops = [](std::int64_t queries, bool causal) {
    return built_in("attention").work(attention_problem({1, 4, 2, queries, 64, 16, causal})).flops;
  };
  EXPECT_EQ(flops(8, true), 4.0 * 4 * 16 * (8 * 64 - 8 * 8 / 2));
  EXPECT_NEAR(flops(1, true), flops(1, false), 0.01 * flops(1, false));
}

TEST(Attention, CountsWorkAsItsPeersDo) {
  const auto work = [](bool causal) {
    return built_in("attention")
        .work(attention_problem({4, 32, 8, 4096, 4096, 128, causal}, DType::f16, DType::f16));
  };
  EXPECT_EQ(work(false).flops, 4.0 * 4 * 32 * 4096 * 4096 * 128);
  EXPECT_EQ(work(true).flops, 2.0 * 4 * 32 * 4096 * 4096 * 128);
  EXPECT_EQ(work(true).bytes, 2.0 * 4 * 4096 * 128 * (2 * 32 + 2 * 8));
}

}  // namespace
}  // namespace greta::test::attention_test
