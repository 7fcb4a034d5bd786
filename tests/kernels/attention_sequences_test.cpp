// Protects: packed sequences of any lengths are attended to as each would be alone, on every device
// and by every variant that takes them: empty ones, those with fewer keys than queries or without
// keys, and tokens after the last one.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"
#include "tests/kernels/attention_runs.hpp"
#include "tests/kernels/cooperative_gpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::attention_sequences_test {
namespace {

using Starts = std::vector<std::int64_t>;

/// `queries` and `keys`: where each sequence begins, and the end of the last one.
struct Case {
  AttentionShape shape;  // of all tokens
  DType in, out;
  Starts queries, keys;
};

Problem problem_of(const Case& c) {
  Problem problem = attention_problem(c.shape, c.in, c.out);
  problem.attributes.emplace_back("lse", "stored");
  problem.attributes.emplace_back("sequences", "packed");
  return problem;
}

std::vector<Case> cases() {
  const DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;
  const auto last = std::numeric_limits<std::int32_t>::max();
  return {
      {{4, 4, 2, 90, 150, 64, true}, f16, f16, {0, 5, 5, 70, 90}, {0, 33, 40, 150, 150}},
      {{3, 6, 2, 40, 200, 80, false}, bf16, f32, {0, 1, 2, 40}, {0, 100, 100, 200}},
      {{2, 3, 1, 70, 60, 40, true}, f16, f32, {7, 20, 50}, {-1, 60, last}},
      {{5, 8, 1, 5, 130, 64, true}, f16, f16, {0, 1, 2, 3, 4, 5}, {0, 64, 65, 65, 129, 130}},
      {{1, 2, 2, 33, 33, 128, true}, bf16, bf16, {0, 33}, {0, 33}},
  };
}

/// Keys after the last sequence are NaN, and have no effect.
std::vector<HostTensor> inputs_of(const Case& c, const Problem& problem) {
  auto inputs = attention_inputs(problem, 1);
  for (std::size_t i = 0; i < c.queries.size(); ++i) {
    store_element(DType::i32, inputs[3].data.data(), i, static_cast<double>(c.queries[i]));
    store_element(DType::i32, inputs[4].data.data(), i, static_cast<double>(c.keys[i]));
  }
  const std::int64_t used = std::min(c.keys.back(), c.shape.keys) * c.shape.kv_heads;
  for (const std::size_t tensor : {1, 2}) {
    HostTensor& t = inputs[tensor];
    const std::size_t line = bytes_of(t.spec.dtype, static_cast<std::size_t>(t.spec.cols));
    const auto from = static_cast<std::size_t>(used) * line;
    if (from < t.data.size()) std::memset(t.data.data() + from, 0xff, t.data.size() - from);
  }
  return inputs;
}

class AttentionSequences : public ::testing::TestWithParam<std::string> {};

TEST_P(AttentionSequences, AreRightInEveryVariant) {
  Device& device = test::device(GetParam());
  const DeviceInfo& info = device.info();
  std::mt19937_64 random(1);
  std::set<std::string> run;
  for (const Case& c : cases()) {
    const Problem problem = problem_of(c);
    const auto inputs = inputs_of(c, problem);
    for (const Variant& variant : built_in("attention").variants) {
      const Space space({variant.space(built_in("attention").shape(problem), info)});
      if (space.count() == 0) continue;
      const Config config = space.sample(random);
      SCOPED_TRACE(problem.key() + " | " + config.text());
      const auto outputs = run_attention(device, problem, config, inputs);
      if (outputs.empty()) continue;
      const Verdict verdict = built_in("attention").reference(problem, inputs, 1)->check(outputs);
      EXPECT_TRUE(verdict.passed) << verdict.detail;
      run.insert(variant.name);
    }
  }
  EXPECT_TRUE(run.contains("vector"));
  EXPECT_FALSE(run.contains("decode"));
  EXPECT_EQ(run.contains("matrix"), !info.matrix_operations.empty());
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionSequences, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

/// Expects that a plan's results on hip-host or a CPU through Vulkan are right.
void expect_right(const char* device_id, const LaunchPlan& plan, const Case& c) {
  const Problem problem = problem_of(c);
  const auto inputs = inputs_of(c, problem);
  const auto done =
      run_plan(test::device(device_id), plan, built_in("attention").tensors(problem), inputs);
  ASSERT_TRUE(done) << done.failure().message << '\n' << done.failure().log;
  EXPECT_EQ(done->overrun, "");
  const Verdict verdict = built_in("attention").reference(problem, inputs, 1)->check(done->outputs);
  EXPECT_TRUE(verdict.passed) << problem.key() << ": " << verdict.detail;
}

TEST(AttentionSequencesOfMatrixCores, AreRightByWarpgroups) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  int right = 0;
  for (const Case& c : cases()) {
    for (const char* words :
         {"BK=64 GROUPS=1 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1 FOLD=1 TOGETHER=2",
          "BK=32 GROUPS=2 STAGES=2 PRODUCER=1 TURNS=0 PACK=0 SPLIT=1 FOLD=1 TOGETHER=1"}) {
      SCOPED_TRACE(words);
      const Problem problem = problem_of(c);
      const Space space = built_in("attention").space(problem, hopper);
      const auto config = space.parse(std::string("warpgroups ") + words);
      if (!config) {
        EXPECT_LT(c.shape.queries, 65) << "these tiles would be mostly idle";
        continue;
      }
      ++right;
      LaunchPlan plan = built_in("attention").plan(problem, hopper, *config).value();
      for (KernelSource& source : plan.sources) source.options.clear();  // for NVRTC
      expect_right("hip-host:0", plan, c);
    }
  }
  EXPECT_GE(right, 5);
}

TEST(AttentionSequencesOfMatrixCores, AreRightByCooperativeMatrices) {
  DeviceInfo info = test::device("vulkan:0").info();
  info.matrix_operations = nvidia_products;
  for (Case c : cases()) {
    c.shape.dim = c.shape.dim > 64 ? 32 : 16;  // the CPU's eight lanes have few registers
    for (const int split : {1, 3}) {
      const Config config{"matrix",
                          {{"BK", 16},
                           {"WQ", 16},
                           {"WAVES", 1},
                           {"INSTR", 16},
                           {"QREG", 0},
                           {"PACK", c.shape.heads != c.shape.kv_heads},
                           {"SPLIT", split},
                           {"TOGETHER", 2},
                           {"SUBGROUP", static_cast<int>(info.subgroup_size)}}};
      const Problem problem = problem_of(c);
      auto plan = built_in("attention").plan(problem, info, config);
      ASSERT_TRUE(plan) << plan.failure().message;
      plan->sources[0].options = {"-DGRETA_MATRIX_EMULATED"};
      expect_right("vulkan:0", *plan, c);
    }
  }
}

/// Returns a tensor of `rows` rows, of which row i is row from(i) of another one.
template <typename From>
HostTensor rows_of(const HostTensor& all, const TensorSpec& spec, const From& from) {
  HostTensor some{spec, std::vector<std::byte>(spec.bytes())};
  const std::size_t line = bytes_of(spec.dtype, static_cast<std::size_t>(spec.cols));
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    std::memcpy(some.data.data() + static_cast<std::size_t>(row) * line,
                all.data.data() + static_cast<std::size_t>(from(row)) * line, line);
  }
  return some;
}

TEST(AttentionSequencesReference, ExpectsOfEachSequenceWhatItExpectsOfItAlone) {
  const Case c{
      {3, 4, 2, 40, 60, 16, true, 24}, DType::f32, DType::f32, {0, 9, 9, 40}, {0, 30, 35, 60}};
  const Problem packed = problem_of(c);
  const auto inputs = inputs_of(c, packed);
  const Operation& attention = built_in("attention");
  const auto all = attention.reference(packed, inputs, 1)->expected().value();
  for (const std::size_t s : {0, 2}) {
    const std::int64_t query = c.queries[s], key = c.keys[s];
    AttentionShape alone = c.shape;
    alone.batch = 1;
    alone.queries = c.queries[s + 1] - query;
    alone.keys = std::max(c.keys[s + 1] - key, alone.queries);  // the capacity
    const Problem problem = attention_problem(alone, c.in, c.out);
    const std::int64_t length = c.keys[s + 1] - key;
    auto own = attention_inputs(problem, 1, {length});
    const std::int64_t heads = c.shape.heads, kv_heads = c.shape.kv_heads;
    own[0] = rows_of(inputs[0], own[0].spec, [&](std::int64_t i) { return query * heads + i; });
    for (const std::size_t tensor : {1, 2}) {
      own[tensor] = rows_of(inputs[tensor], own[tensor].spec, [&](std::int64_t i) {
        const std::int64_t of_sequence = std::min(i % alone.keys, length - 1);
        return (key + of_sequence) * kv_heads + i / alone.keys;
      });
    }
    const auto expected = attention.reference(problem, own, 1)->expected().value().front();
    const auto first = static_cast<std::size_t>(query * heads * c.shape.v_dim);
    ASSERT_LE(first + expected.size(), all.front().size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(all.front()[first + i].value, expected[i].value) << i;
      EXPECT_EQ(all.front()[first + i].bound, expected[i].bound) << i;
    }
  }
}

TEST(AttentionSequencesOptions, ArePackedWithoutPages) {
  const Operation& attention = built_in("attention");
  const auto made = make_problem(
      attention,
      {{{"heads", "2"}, {"q", "9"}, {"dim", "8"}, {"page_size", "16"}, {"sequences", "packed"}},
       "",
       ""});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().field->field, "sequences");
  // Some sequences may have more queries than keys.
  EXPECT_TRUE(make_problem(attention, {{{"heads", "2"},
                                        {"q", "9"},
                                        {"kv", "5"},
                                        {"dim", "8"},
                                        {"mask", "causal"},
                                        {"sequences", "packed"}},
                                       "",
                                       ""}));
}

/// The number of keys that a problem's work reads, from the bytes of K and V.
double keys_of_work(const Problem& problem) {
  const Operation& attention = built_in("attention");
  double others = 0, line = 0;
  for (const TensorSpec& spec : attention.tensors(problem)) {
    const bool keys = spec.name == "K" || spec.name == "V";
    if (keys)
      line += static_cast<double>(bytes_of(spec.dtype, static_cast<std::size_t>(spec.cols)));
    if (!keys && spec.dtype != DType::i32) others += static_cast<double>(spec.bytes());
  }
  return (attention.work(problem).bytes - others) / line /
         static_cast<double>(problem.dim("kv_heads"));
}

TEST(AttentionLengths, AreTheirOwnWhereRaggedAndWorkIsCountedFromThem) {
  const Operation& attention = built_in("attention");
  Problem problem = attention_problem({8, 32, 8, 3, 4096, 128}, DType::f16, DType::f16);
  EXPECT_EQ(keys_of_work(problem), 8 * 4096);
  problem.attributes.emplace_back("lengths", "ragged");
  const HostTensor lengths = attention.inputs(problem, 1)[3];
  EXPECT_EQ(attention.inputs(problem, 2)[3].data, lengths.data) << "lengths depend on the seed";
  std::set<double> seen;
  double sum = 0;
  for (std::size_t i = 0; i < lengths.spec.elements(); ++i) {
    EXPECT_GE(lengths.at(i), 3);
    EXPECT_LE(lengths.at(i), 4096);
    seen.insert(lengths.at(i));
    sum += lengths.at(i);
  }
  EXPECT_EQ(seen.size(), 8U);
  EXPECT_EQ(keys_of_work(problem), sum);
  // Two products of 128 multiplications for each key of 32 heads' three queries.
  EXPECT_EQ(attention.work(problem).flops, 4.0 * 128 * 32 * 3 * sum);
}

TEST(AttentionLengths, OfPackedSequencesAddUpToAllTokens) {
  const Operation& attention = built_in("attention");
  for (const char* value : {"full", "ragged"}) {
    Problem problem = attention_problem({5, 2, 2, 999, 2001, 64}, DType::f16, DType::f16);
    problem.attributes.emplace_back("sequences", "packed");
    if (std::string_view(value) == "ragged") problem.attributes.emplace_back("lengths", value);
    const auto inputs = attention.inputs(problem, 1);
    double pairs = 0;
    std::set<double> seen;
    for (std::size_t i = 0; i < 5; ++i) {
      const double queries = inputs[3].at(i + 1) - inputs[3].at(i);
      const double keys = inputs[4].at(i + 1) - inputs[4].at(i);
      EXPECT_GT(queries, 0);
      pairs += queries * keys;
      seen.insert(keys);
    }
    EXPECT_EQ(inputs[3].at(5), 999);
    EXPECT_EQ(inputs[4].at(5), 2001);
    EXPECT_EQ(seen.size() > 2, std::string_view(value) == "ragged");
    EXPECT_EQ(keys_of_work(problem), 2001);
    EXPECT_EQ(attention.work(problem).flops, 4.0 * 64 * 2 * pairs);
  }
}

}  // namespace
}  // namespace greta::test::attention_sequences_test
