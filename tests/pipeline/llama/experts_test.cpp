// Protects: Mixtral and the experts of Qwen2 and Qwen3, from folders and GGUF files: every stage of
// a prompt and of a token agrees with FP64, and a wrong expert is found.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/pipeline/llama/batch.hpp"
#include "runtime/pipeline/llama/expert_stages.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/llama/expert_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::experts_test {
namespace {

using Ids = std::vector<std::int32_t>;
using enum LlamaStage;

class Experts : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { runtime_ = open_runtime(GetParam()); }

  LlamaModel load(const TinyLlama& model) {
    model.write(folder_.path());
    return load_llama(folder_.path());
  }
  LlamaRunner runner(const LlamaModel& model, DType type) {
    LlamaOptions options;
    options.capacity = 32;
    return {*runtime_, upload_weights(*runtime_, model, type), options};
  }
  /// Checks the stages of a prompt and of a token.
  void check(const LlamaModel& model, DType type) {
    LlamaRunner llama = runner(model, type);
    const LlamaTraceCheck stages(model, {type, type, type, DType::f32});
    for (const Ids& ids : {prompt, Ids{250}}) {
      const LlamaTrace trace = llama.trace(ids);
      EXPECT_FALSE(trace.layers.back()[expert_sum].empty());
      const auto wrong = first_failure(stages.check(trace));
      EXPECT_FALSE(wrong) << wrong->text();
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_P(Experts, EveryStageIsWithinItsBound) {
  for (const char* kind : kinds) {
    SCOPED_TRACE(kind);
    const LlamaModel model = load(tiny(kind));
    check(model, DType::f32);
    if (model.config.experts.shared_hidden_dim == 0) continue;
    check(model, DType::f16);
    for (const bool gated : {false, true}) {
      SetUp();
      ASSERT_TRUE(runtime_->use(gated ? "expert_ffn: gated" : "residual_norm: add_norm"));
      if (gated) {
        ASSERT_TRUE(runtime_->use("gate_up: parts"));
      }
      check(model, DType::f16);
    }
  }
}

// Graphs are replayed with other tokens, whose experts are others: logits of a prompt and of
// decoded tokens are those of FP64.
TEST_P(Experts, LogitsAreThoseOfFp64) {
  for (const char* kind : kinds) {
    SCOPED_TRACE(kind);
    const LlamaModel model = load(tiny(kind));
    LlamaRunner llama = runner(model, DType::f32);
    LlamaReference reference(model, DType::f32);
    for (const Ids& ids : {prompt, Ids{250}, Ids{9}, Ids{77}}) {
      llama.feed(ids);
      const std::vector<double> want = reference.run(ids);
      const std::vector<float> got = llama.logits();
      EXPECT_LT(largest_difference(want, {got.begin(), got.end()}), 1e-3);
    }
  }
}

// A batch of lanes, of which some are padded: what padding selects must not change others.
TEST_P(Experts, SequencesOfDifferentLengthsAreThoseOfEachAlone) {
  const LlamaModel model = load(tiny("qwen2_moe"));
  LlamaBatchOptions options;
  options.sequences = 2;
  options.page = 16;
  options.capacity = 32;
  LlamaBatch batch(*runtime_, upload_weights(*runtime_, model, DType::f32), options);
  const std::vector<Ids> prompts{prompt, {9, 8, 7}, {4, 5, 6, 7, 8}};
  for (const Ids& ids : prompts) {
    LlamaRequest request;
    request.prompt = ids;
    request.tokens = 4;
    batch.add(request);
  }
  while (batch.step()) {
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    LlamaReference reference(model, DType::f32);
    std::vector<double> logits = reference.run(prompts[i]);
    Ids want;
    for (int step = 0; step < 4; ++step) {
      want.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                               logits.begin()));
      logits = reference.run(Ids{want.back()});
    }
    EXPECT_EQ(batch.sequence(i).generated, want) << i;
  }
}

// The memory check counts all experts, and the tuner sees their operations.
TEST_P(Experts, NeedsAndProblemsAreKnownBeforehand) {
  const LlamaModel model = load(tiny("qwen2_moe"));
  LlamaOptions options;
  options.capacity = 32;
  const LlamaNeeds needs = llama_needs(*runtime_, model.config, DType::f32, options, 12);
  EXPECT_EQ(runtime_->device().memory().in_use_bytes, 0U);
  LlamaRunner llama(*runtime_, upload_weights(*runtime_, model, DType::f32), options);
  llama.feed(prompt);
  llama.feed(Ids{1});
  const auto used = static_cast<double>(runtime_->device().memory().in_use_bytes);
  EXPECT_NEAR(static_cast<double>(needs.total()), used, 0.02 * used);
  EXPECT_EQ(weight_bytes(model.config, DType::f32),
            4 * static_cast<std::uint64_t>(model.config.parameters()));
  std::vector<std::string> names;
  for (const Problem& problem : llama_problems(*runtime_, model.config, DType::f32, options)) {
    names.push_back(problem.op);
  }
  for (const char* op : {"route", "permute", "grouped_gemm", "unpermute", "experts"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), op), names.end()) << op;
  }
}

// One changed element of each stage is named as this stage.
TEST_P(Experts, AWrongStageIsNamed) {
  const LlamaModel model = load(tiny("qwen2_moe"));
  LlamaRunner llama = runner(model, DType::f32);
  const LlamaTrace right = llama.trace(prompt);
  const LlamaTraceCheck check(model, {});
  for (const LlamaStage stage : {router, experts, expert_weights, expert_rows, expert_gate,
                                 expert_up, expert_silu_mul, expert_out, expert_sum, shared_router,
                                 shared_weight, silu_mul, shared_scaled, shared_out, ffn_out}) {
    LlamaTrace wrong = right;
    double& value = wrong.layers[1][stage].values.at(1);
    value = stage == experts ? std::fmod(value + 1, 5) : value * 1.001 + 1e-3;
    const auto found = first_failure(check.check(wrong));
    ASSERT_TRUE(found) << to_string(stage);
    EXPECT_EQ(found->text().substr(0, found->text().find(':')),
              "layer 1 " + std::string(to_string(stage)));
  }
}

// Few rows take the operation experts, whose sum is checked without what is between its products,
// for as many rows as there are.
TEST_P(Experts, AWrongSumOfTheOperationExpertsIsFound) {
  const LlamaModel model = load(tiny("mixtral"));
  for (const bool forced : {false, true}) {
    SetUp();
    if (forced) {
      ASSERT_TRUE(runtime_->use("expert_ffn: fused"));
    }
    LlamaRunner llama = runner(model, DType::f16);
    LlamaTrace trace = llama.trace(forced ? prompt : Ids{1});
    EXPECT_TRUE(trace.layers[1][expert_out].empty());
    const TraceTypes types{DType::f16, DType::f16, DType::f16, DType::f32};
    ASSERT_FALSE(first_failure(LlamaTraceCheck(model, types).check(trace)));
    double& value = trace.layers[1][expert_sum].values.at(3);
    value += 0.01 * std::abs(value) + 1e-3;
    const auto found = first_failure(LlamaTraceCheck(model, types).check(trace));
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->text().starts_with("layer 1 expert_sum:")) << found->text();
  }
}

// Quantised experts are multiplied as they are stored, many rows of fp8 in grouped products; by
// rules also others, as they are stored or decoded: every stage of a prompt and of a token.
TEST_P(Experts, QuantisedOnesAreWithinTheirBounds) {
  for (const std::string rule : {"", "quantised", "gated", "parts", "scaled", "fused"}) {
    SCOPED_TRACE(rule);
    SetUp();
    ASSERT_TRUE(rule.empty() || runtime_->use("expert_ffn: " + rule));
    const std::vector<QuantisedExperts> files = quantised_files();
    // Grouped products have blocks of two formats, and integers with zero points.
    const bool fp8 = rule == "scaled" || rule == "fused";
    for (const QuantisedExperts& stored : files) {
      const bool integers = &stored == &files[2] || &stored == &files[3];
      if (!rule.empty() && !(fp8 ? stored.gate_up.scaled.has_value() : integers)) continue;
      SCOPED_TRACE(stored.name);
      stored.write(folder_.path());
      const LlamaModel model = load_llama(folder_ / stored.file);
      EXPECT_EQ(model.config.formats.layer(0).expert_gate_up, stored.gate_up);
      EXPECT_EQ(model.config.formats.layer(0).expert_down, stored.down);
      LlamaRunner llama = runner(model, DType::f16);
      const bool given = model.config.formats.given_inputs();  // which needs a `quantize`
      if (rule == "fused" && given) {
        expect_refused([&] { llama.trace(prompt); }, "computes its own; allowed: scaled");
        continue;
      }
      const LlamaTraceCheck stages(model, {DType::f16, DType::f16, DType::f16, DType::f32});
      for (const Ids& ids : {prompt, Ids{250}}) {
        const LlamaTrace trace = llama.trace(ids);
        const bool few = ids.size() <= 8 || stored.gate_up.quantised;
        const bool fused = rule.empty() ? few : rule == "fused";
        EXPECT_EQ(trace.layers[0][expert_out].empty(), fused && !given);
        EXPECT_EQ(trace.layers[0].decoded_experts, rule == "gated" || rule == "parts");
        const auto wrong = first_failure(stages.check(trace));
        EXPECT_FALSE(wrong) << wrong->text();
      }
    }
  }
}

// Every problem of models as they are published has a configuration on the device, in all types.
TEST_P(Experts, PublishedSizesCanRun) {
  LlamaConfig qwen = *named_llama("qwen3-30b-a3b");  // Qwen1.5-MoE-A2.7B
  qwen.dim = 2048;
  qwen.kv_heads = qwen.heads = 16;
  qwen.qk_norm = false;
  qwen.qkv_bias = true;
  qwen.experts = {.count = 60, .top_k = 4, .hidden_dim = 1408, .shared_hidden_dim = 5632};
  for (LlamaConfig config : {*named_llama("mixtral-8x7b"), *named_llama("qwen3-30b-a3b"), qwen}) {
    config.layers = 2;
    LlamaOptions options;
    options.capacity = 512;
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      for (const Problem& problem : llama_problems(*runtime_, config, type, options)) {
        EXPECT_TRUE(runtime_->answer(problem)) << problem.key();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Experts, ::testing::Values("vulkan:0", "hip-host:0"),
                         device_name);

// Worked by hand: of equal logits, the expert with the lower number comes first. Weights of all
// experts and of the selected ones.
TEST(ExpertStages, SelectAndWeigh) {
  TraceMatrix logits(1, 4);
  logits.values = {0, std::log(3), std::log(2), std::log(3)};
  const TraceMatrix two = stages::select_experts(logits, 2),
                    three = stages::select_experts(logits, 3);
  EXPECT_EQ(two.values, (std::vector<double>{1, 3}));
  EXPECT_EQ(three.values, (std::vector<double>{1, 3, 2}));
  EXPECT_NEAR(stages::expert_weights(logits, two, true).values[0], 0.5, 1e-12);
  EXPECT_NEAR(stages::expert_weights(logits, three, true).values[2], 0.25, 1e-12);
  EXPECT_NEAR(stages::expert_weights(logits, three, false).values[2], 2.0 / 9, 1e-12);
  TraceMatrix rows(2, 1);
  rows.values = {10, 30};
  TraceMatrix weights(1, 2);
  weights.values = {0.75, 0.25};
  EXPECT_NEAR(stages::weighted_sum(rows, weights).values[0], 15, 1e-12);
  EXPECT_NEAR(stages::sigmoid(std::log(3)), 0.75, 1e-12);
}

// Nearly equal logits: the device's choice is checked by its own logits, so that either of two
// experts whose FP64 logits differ by less than the bound is accepted, with what follows from it.
TEST(ExpertStages, ANearTieIsNoError) {
  const TemporaryFolder folder;
  TinyLlama small = tiny("mixtral");
  small.layers = 1;
  small.write(folder.path());
  const LlamaModel model = load_llama(folder.path());
  LlamaTrace trace;
  LlamaReference(model).run(Ids{17}, &trace);
  LlamaLayerTrace& layer = trace.layers[0];
  // The second and third expert change places, and so does what is computed of them.
  const TraceMatrix order = stages::select_experts(layer[router], 3);
  double& second = layer[router].values[static_cast<std::size_t>(order.values[1])];
  double& third = layer[router].values[static_cast<std::size_t>(order.values[2])];
  const double apart = second - third;
  second -= apart;
  third += apart;
  const LlamaTraceCheck check(model, {});
  EXPECT_EQ(first_failure(check.check(trace))->stage, router) << "a difference that isn't small";
  // With a router whose logits are nearly equal, the same is no error.
  LlamaModel tie = load_llama(folder.path());
  std::vector<float> weights(5 * 32);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(1 + 1e-9 * static_cast<double>(i / 32));
  }
  tie.weights.layers[0].router.data = reinterpret_cast<const std::byte*>(weights.data());
  LlamaReference(tie).run(Ids{17}, &trace);
  LlamaLayerTrace& tied = trace.layers[0];
  tied[router].values[4] += 1e-7 * std::abs(tied[router].values[4]);
  tied[experts].values = {4, 0};
  tied[expert_weights] = stages::expert_weights(tied[router], tied[experts], true);
  const stages::Weights exact(std::nullopt);
  const std::vector<LlamaExpert>& networks = tie.weights.layers[0].experts;
  const auto multiply = [&](WeightView LlamaExpert::*matrix, LlamaStage from) {
    return stages::multiply_by_experts(exact, networks, matrix, tied[experts], tied[from]);
  };
  tied[expert_gate] = multiply(&LlamaExpert::gate, expert_rows);
  tied[expert_up] = multiply(&LlamaExpert::up, expert_rows);
  for (std::size_t i = 0; i < tied[expert_up].values.size(); ++i) {
    tied[expert_silu_mul].values[i] =
        stages::silu_mul(tied[expert_gate].values[i], tied[expert_up].values[i]);
  }
  tied[expert_out] = multiply(&LlamaExpert::down, expert_silu_mul);
  tied[expert_sum] = stages::weighted_sum(tied[expert_out], tied[expert_weights]);
  for (std::size_t i = 0; i < tied[ffn_out].values.size(); ++i) {
    tied[ffn_out].values[i] = tied[expert_sum].values[i] + tied[attn_out].values[i];
  }
  trace.final_norm = {};
  trace.logits = {};
  const auto wrong = first_failure(LlamaTraceCheck(tie, {}).check(trace));
  EXPECT_FALSE(wrong) << wrong->text();
}

}  // namespace
}  // namespace greta::test::experts_test
