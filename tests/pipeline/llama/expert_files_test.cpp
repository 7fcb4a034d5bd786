// Protects: files of Mixtral and the experts of Qwen2 and Qwen3, folders and GGUF: what
// distinguishes the architectures matters, and what can't be read is refused in one line.
#include "tests/pipeline/llama/expert_files.hpp"

#include <gtest/gtest.h>

#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::expert_files_test {
namespace {

using experts_test::kinds, experts_test::largest_difference, experts_test::prompt,
    experts_test::tiny;

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
}  // namespace greta::test::expert_files_test
