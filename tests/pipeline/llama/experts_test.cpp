// Protects: Mixtral and the experts of Qwen2 and Qwen3, from folders and GGUF files: every stage of
// a prompt and of a token agrees with FP64, a wrong expert is found, and what distinguishes the
// architectures matters.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/pipeline/llama/batch.hpp"
#include "runtime/pipeline/llama/expert_stages.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/llama/expert_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::experts_test {
namespace {

using Ids = std::vector<std::int32_t>;
using enum LlamaStage;

const Ids prompt{1, 17, 250, 3, 99, 7, 7, 128, 40, 201, 12, 5};
constexpr const char* kinds[] = {"mixtral", "qwen2_moe", "qwen3_moe"};

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
      const LlamaTraceCheck stages(model, {DType::f16, DType::f16, DType::f16, DType::f32});
      for (const Ids& ids : {prompt, Ids{250}}) {
        const LlamaTrace trace = llama.trace(ids);
        const bool few = ids.size() <= 8 || stored.gate_up.quantised;
        const bool fused = rule.empty() ? few : rule == "fused";
        const bool given = model.config.formats.given_inputs();  // which needs a `quantize`
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

// Weights that aren't renormalised, the shared expert and dense layers each change the result.
TEST(ExpertFiles, WhatDistinguishesArchitecturesMatters) {
  const TemporaryFolder folder;
  tiny("qwen2_moe").write(folder.path());
  const LlamaModel model = load_llama(folder.path());
  EXPECT_FALSE(model.config.has_experts(0));
  EXPECT_TRUE(model.config.has_experts(1));
  const auto own = LlamaReference(model).run(prompt);
  LlamaModel other = load_llama(folder.path());
  other.config.experts.renormalise = true;
  EXPECT_GT(largest_difference(own, LlamaReference(other).run(prompt)), 0.01);
  other = load_llama(folder.path());
  other.config.experts.shared_hidden_dim = 0;
  EXPECT_GT(largest_difference(own, LlamaReference(other).run(prompt)), 0.01);
}

TEST(ExpertFiles, OfGgufAndOfHuggingFaceAreTheSameModel) {
  const TemporaryFolder folder;
  for (const char* kind : kinds) {
    SCOPED_TRACE(kind);
    TinyGguf file;
    file.tiny = tiny(kind);
    file.tiny.dense_layers = {};
    file.write(folder.path());
    const LlamaModel one = load_llama(folder.path()), other = load_llama(folder / "model.gguf");
    EXPECT_EQ(one.config.experts, other.config.experts);
    EXPECT_EQ(one.config.parameters(), other.config.parameters());
    EXPECT_LT(
        largest_difference(LlamaReference(one).run(prompt), LlamaReference(other).run(prompt)),
        1e-9);
  }
}

// What the products of experts can't read is refused, and can be decoded. Numbers are quantised as
// other projections are.
TEST(ExpertFiles, OthersMustBeDecoded) {
  const TemporaryFolder folder;
  TinyGguf file;
  file.tiny = tiny("mixtral");
  file.others = {{"w1", BlockFormat::q8_0}, {"w3", BlockFormat::q4_0}};
  file.write(folder.path());
  LlamaModel model = load_llama(folder / "model.gguf");
  const auto runtime = open_runtime("vulkan:0");
  expect_refused([&] { upload_weights(*runtime, model, DType::f32); },
                 "the experts are stored in numbers and q4_0 and q8_0");
  quantise(model, Quantisation::decoded, DType::f32);
  LlamaOptions options;
  options.capacity = 32;
  LlamaRunner llama(*runtime, upload_weights(*runtime, model, DType::f32), options);
  llama.feed(prompt);
  const std::vector<float> got = llama.logits();
  EXPECT_LT(largest_difference(LlamaReference(model).run(prompt), {got.begin(), got.end()}), 1e-3);
  model = load_llama(folder.path());
  LlamaConfig config = model.config;
  const QuantisedProjections counts = quantise(model, Quantisation::q8_0, DType::f32);
  EXPECT_EQ(counts.quantised, 3 * (4 + 3 * 5));
  EXPECT_EQ(quantise(config, Quantisation::q8_0).quantised, counts.quantised);
  EXPECT_EQ(weight_bytes(config, DType::f32), weight_bytes(model.config, DType::f32));
  const TraceTypes types{DType::f32, DType::f32, DType::f32, DType::f32};
  LlamaRunner quantised(*runtime, upload_weights(*runtime, model, DType::f32), options);
  const auto wrong = first_failure(LlamaTraceCheck(model, types).check(quantised.trace(prompt)));
  EXPECT_FALSE(wrong) << wrong->text();
}

TEST(ExpertFiles, BadOnesAreRefusedInOneLine) {
  const TemporaryFolder folder;
  const auto refused = [&](TinyLlama model, const std::string& words,
                           const std::string& without = "", const std::string& wrong = "") {
    std::vector<FileTensor> tensors;
    for (FileTensor tensor : model.tensors()) {
      if (tensor.name == without) continue;
      if (tensor.name == wrong) std::swap(tensor.shape[0], tensor.shape[1]);
      tensors.push_back(tensor);
    }
    write_file(folder / "config.json", model.config().dump());
    write_file(folder / "model.safetensors", safetensors_of(tensors));
    expect_refused([&] { load_llama(folder.path()); }, words);
  };
  const std::string w2 = "model.layers.1.block_sparse_moe.experts.4.w2.weight";
  refused(tiny("mixtral"), "has no tensor '" + w2 + "'", w2);
  refused(tiny("mixtral"), "tensor '" + w2 + "' is [64, 32]; by its config it must be [32, 64]", "",
          w2);
  const std::string gate = "model.layers.2.mlp.shared_expert_gate.weight";
  refused(tiny("qwen2_moe"), "has no tensor '" + gate + "'", gate);
  const auto with = [](const char* kind, const nlohmann::json& more) {
    TinyLlama model = tiny(kind);
    model.more = more;
    return model;
  };
  refused(with("qwen3_moe", {{"num_experts_per_tok", 6}}),
          "num_experts_per_tok is 6; allowed: 1 to 5");
  refused(with("mixtral", {{"num_local_experts", 0}}),
          "num_local_experts is 0; allowed: 1 to 1024");
  refused(with("qwen3_moe", {{"num_experts", 4}}),
          "tensor 'model.layers.1.mlp.gate.weight' is [5, 32]; by its config it must be [4, 32]");
  refused(with("qwen3_moe", {{"mlp_only_layers", "0"}}), "mlp_only_layers isn't a list");
  refused(with("qwen3_moe", {{"mlp_only_layers", {-1}}}), "an element that is not a layer");
  refused(with("qwen3_moe", {{"decoder_sparse_step", 0}}), "decoder_sparse_step is 0");
  refused(with("mixtral", {{"quantization_config", {{"quant_method", "bitsandbytes"}}}}),
          "quant_method is 'bitsandbytes'");
}

TEST(ExpertFiles, MutationsAreReadOrRefused) {
  const TemporaryFolder folder;
  for (const char* kind : {"mixtral", "qwen2_moe"}) {
    TinyLlama model = tiny(kind);
    model.layers = 2;
    model.write(folder.path());
    const auto load = [&] { sum_of(load_llama(folder.path())); };
    EXPECT_GT(refused_mutations(folder / "config.json", 300, true, load), 100);
    EXPECT_GT(refused_mutations(folder / "model.safetensors", 100, false, load), 20);
  }
}

TEST(ExpertFiles, LayersWithExpertsAreThoseOfTheStep) {
  TinyLlama model = tiny("qwen3_moe");
  model.dense_layers = {3};
  model.more = {{"num_hidden_layers", 6}, {"decoder_sparse_step", 2}};
  const LlamaConfig config = llama_config_from_json(model.config().dump(), "c");
  EXPECT_EQ(config.experts.dense_layers, (std::vector<std::int64_t>{0, 2, 3, 4}));
  // A model of which no layer has experts is one without.
  model.more["decoder_sparse_step"] = 7;
  EXPECT_EQ(llama_config_from_json(model.config().dump(), "c").experts.count, 0);
}

TEST(ExpertFiles, NamedOnesHaveTheirPublishedSizes) {
  EXPECT_EQ(named_llama("mixtral-8x7b")->parameters(), 46702792704);
  EXPECT_EQ(named_llama("qwen3-30b-a3b")->parameters(), 30532122624);
  for (const std::string& name : llama_names()) named_llama(name)->check();
}

}  // namespace
}  // namespace greta::test::experts_test
