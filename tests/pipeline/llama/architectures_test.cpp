// Protects: Mistral, Qwen2 with its biases, Qwen3 with its norms of heads, and Llamas with biases
// of all projections, from folders and GGUF files, in numbers and quantised: every stage agrees
// with FP64, both files with each other, and a model without its biases or norms would not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/pipeline/packed_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::architectures_test {
namespace {

using Ids = std::vector<std::int32_t>;
const Ids twelve{1, 17, 250, 3, 99, 7, 7, 128, 40, 201, 12, 5};

TinyGguf tiny(const std::string& kind, std::optional<BlockFormat> blocks) {
  TinyGguf file;
  file.tiny = {.dim = 64, .hidden = 96, .layers = 2, .heads = 8, .kv_heads = 4, .vocab = 300};
  file.tiny.kind = kind;
  file.blocks = blocks;
  return file;
}

/// Returns a Llama with biases of all projections.
TinyGguf biased(std::optional<BlockFormat> blocks) {
  TinyGguf file = tiny("llama", blocks);
  file.tiny.attention_bias = file.tiny.mlp_bias = true;
  return file;
}

class Architectures : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { runtime_ = open_runtime(GetParam()); }

  /// Checks the stages of a prompt and of a token.
  void check(const LlamaModel& model, DType type, const char* rule = nullptr) {
    SetUp();
    if (rule != nullptr) {
      ASSERT_TRUE(runtime_->use(rule));
    }
    LlamaOptions options;
    options.capacity = 32;
    LlamaRunner llama(*runtime_, upload_weights(*runtime_, model, type), options);
    const LlamaTraceCheck stages(model, {type, type, type, DType::f32});
    for (const Ids& ids : {twelve, Ids{250}}) {
      const LlamaTrace trace = llama.trace(ids);
      const auto wrong = first_failure(stages.check(
          trace, [&](std::int64_t layer) { return llama.probe_attention(trace, layer); }));
      EXPECT_FALSE(wrong) << wrong->text();
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_P(Architectures, EveryStageIsWithinItsBound) {
  for (const char* kind : {"mistral", "qwen2", "qwen3"}) {
    SCOPED_TRACE(kind);
    tiny(kind, std::nullopt).write(folder_.path());
    const LlamaModel model = load_llama(folder_.path());
    for (const DType type : {DType::f32, DType::f16}) check(model, type);
    for (const char* rule : {"qkv: split", "qkv: parts", "rope_kv: parts"}) {
      SCOPED_TRACE(rule);
      check(model, DType::f16, rule);
    }
  }
}

TEST_P(Architectures, BiasesOfAllProjectionsAreAdded) {
  biased(std::nullopt).write(folder_.path());
  const LlamaModel numbers = load_llama(folder_.path());
  for (const DType type : {DType::f32, DType::bf16}) check(numbers, type);
  for (const char* rule :
       {"gate_up: parts", "gate_up rows=1: fused", "gate_up rows=1: gated",
        "gate_up rows=1: normed", "residual_norm: add_norm", "residual_norm: epilogue"}) {
    SCOPED_TRACE(rule);
    check(numbers, DType::f16, rule);
    if (std::string(rule).starts_with("residual")) continue;
    LlamaModel model = load_llama(folder_.path());
    quantise(model, Quantisation::q8_0, DType::f16);
    check(model, DType::f16, rule);
    for (const ChosenChain& chosen : llama_chains(*runtime_, model.config, DType::f16, {}, 1)) {
      EXPECT_EQ(chosen.instead.contains("gated"), chosen.chain.op == "gate_up");
    }
  }
  LlamaModel model = load_llama(folder_.path());
  quantise(model, Quantisation::fp8, DType::f16);
  check(model, DType::f16);
  TinyGguf file = biased(BlockFormat::q8_0);
  file.others = {{"up_proj", BlockFormat::q4_0}};
  file.write(folder_.path());
  check(load_llama(folder_ / "model.gguf"), DType::f16);
  TinyPacked packed;
  packed.tiny.attention_bias = packed.tiny.mlp_bias = true;
  packed.method = "gptq";
  packed.group = 128;
  packed.write(folder_.path());
  check(load_llama(folder_.path()), DType::f16);
}

// Frequencies of several kinds are in the table of the rotation, of which the FP64 model has its
// own.
TEST_P(Architectures, ScaledFrequencies) {
  TinyGguf file = tiny("qwen3", std::nullopt);
  file.tiny.dim = 128;
  for (const auto& scaling :
       {nlohmann::json{{"rope_type", "yarn"}, {"factor", 4}, {"beta_fast", 4}},
        nlohmann::json{{"type", "yarn"},
                       {"factor", 2.5},
                       {"truncate", false},
                       {"original_max_position_embeddings", 16},
                       {"attention_factor", 0.7}},
        nlohmann::json{{"type", "dynamic"}, {"factor", 4}}}) {
    SCOPED_TRACE(scaling.dump());
    file.tiny.more = {{"rope_scaling", scaling}};
    file.write(folder_.path());
    check(load_llama(folder_.path()), DType::f32);
    check(load_llama(folder_.path()), DType::f16, "rope_kv: fused");
  }
}

TEST_P(Architectures, RandomWeightsHaveBiases) {
  biased(std::nullopt).write(folder_.path());
  const LlamaModel model = load_llama(folder_.path());
  LlamaOptions options;
  options.capacity = 32;
  const LlamaNeeds needs = llama_needs(*runtime_, model.config, DType::f16, options, 12);
  LlamaRunner llama(*runtime_, random_weights(*runtime_, model.config, DType::f16, 1), options);
  llama.feed(twelve);
  llama.feed(Ids{1});
  const auto used = static_cast<double>(runtime_->device().memory().in_use_bytes);
  EXPECT_NEAR(static_cast<double>(needs.total()), used, 0.05 * used);
  EXPECT_TRUE(std::isfinite(llama.logits().front()));
}

// Biases are added after products with quantised weights, of one matrix and of parts, of one token
// and of several.
TEST_P(Architectures, QuantisedOnesAsWell) {
  for (const char* kind : {"qwen2", "qwen3"}) {
    SCOPED_TRACE(kind);
    TinyGguf file = tiny(kind, BlockFormat::q8_0);
    file.write(folder_.path());
    check(load_llama(folder_ / "model.gguf"), DType::f16);
    file.others = {{"v_proj", BlockFormat::q4_0}};
    file.write(folder_.path());
    check(load_llama(folder_ / "model.gguf"), DType::f16);
  }
  TinyPacked packed;
  packed.tiny.kind = "qwen2";
  packed.method = "gptq";
  packed.group = 128;
  packed.write(folder_.path());
  check(load_llama(folder_.path()), DType::f16);
}

TEST_P(Architectures, ABatchIsBiasedInEachRow) {
  tiny("qwen2", BlockFormat::q8_0).write(folder_.path());
  const LlamaModel model = load_llama(folder_ / "model.gguf");
  LlamaOptions options;
  options.capacity = 32;
  options.batch = 2;
  LlamaRunner llama(*runtime_, upload_weights(*runtime_, model, DType::f32), options);
  const Ids other{9, 8, 7, 6, 5, 4, 3, 2, 1, 10, 11, 12};
  Ids both = twelve;
  both.insert(both.end(), other.begin(), other.end());
  llama.feed(both);
  llama.feed(Ids{33, 44});
  const std::vector<float> got = llama.logits();
  for (std::size_t i = 0; i < 2; ++i) {
    LlamaReference reference(model, DType::f32);
    reference.run(i == 0 ? twelve : other);
    const std::vector<double> want = reference.run(Ids{i == 0 ? 33 : 44});
    for (std::size_t j = 0; j < want.size(); ++j) {
      ASSERT_NEAR(got[i * want.size() + j], want[j], 1e-3) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Architectures, ::testing::Values("vulkan:0", "hip-host:0"),
                         device_name);

// Files of GGUF and of Hugging Face name and order the same weights differently.
TEST(ArchitectureFiles, OfBothFormatsAreTheSameModel) {
  const TemporaryFolder folder;
  TinyGguf norms_and_biases = tiny("qwen3", std::nullopt);
  norms_and_biases.tiny.attention_bias = true;
  for (const TinyGguf& file :
       {tiny("llama", std::nullopt), tiny("mistral", std::nullopt), tiny("qwen2", std::nullopt),
        tiny("qwen3", std::nullopt), biased(std::nullopt), norms_and_biases}) {
    SCOPED_TRACE(file.tiny.kind);
    file.write(folder.path());
    const LlamaModel one = load_llama(folder.path()), other = load_llama(folder / "model.gguf");
    EXPECT_EQ(one.config.parameters(), other.config.parameters());
    const auto a = LlamaReference(one).run(twelve), b = LlamaReference(other).run(twelve);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-9) << i;
    // What distinguishes an architecture matters.
    LlamaModel plain = load_llama(folder.path());
    if (!plain.config.qkv_bias && !plain.config.qk_norm) continue;
    EXPECT_EQ(plain.config.out_bias, file.tiny.attention_bias);
    EXPECT_EQ(plain.config.mlp_bias, file.tiny.mlp_bias);
    for (bool LlamaConfig::*property : {&LlamaConfig::qkv_bias, &LlamaConfig::out_bias,
                                        &LlamaConfig::mlp_bias, &LlamaConfig::qk_norm}) {
      if (!(plain.config.*property)) continue;
      plain.config.*property = false;
      const auto without = LlamaReference(plain).run(twelve);
      plain.config.*property = true;
      double most = 0;
      for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - without[i]));
      EXPECT_GT(most, 0.003);
    }
  }
}

// In activation order, hidden units are renumbered with their biases: the model is that of its
// decoded weights.
TEST(ArchitectureFiles, BiasesAreThoseOfTheirUnits) {
  const TemporaryFolder folder, decoded;
  for (const char* method : {"gptq", "compressed-tensors"}) {
    SCOPED_TRACE(method);
    TinyPacked packed;
    packed.method = method;
    packed.desc_act = true;
    packed.tiny.attention_bias = packed.tiny.mlp_bias = true;
    const auto values = packed.write(folder.path());
    std::vector<FileTensor> tensors = packed.tiny.tensors();
    for (FileTensor& tensor : tensors) {
      const auto found = values.find(tensor.name);
      if (found == values.end()) continue;
      tensor.type = "F32";
      tensor.data = GgufWriter::raw(std::vector<float>(found->second.begin(), found->second.end()));
    }
    write_file(decoded / "config.json", packed.tiny.config().dump());
    write_file(decoded / "model.safetensors", safetensors_of(tensors));
    const auto got = LlamaReference(load_llama(folder.path())).run(twelve),
               want = LlamaReference(load_llama(decoded.path())).run(twelve);
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-9) << i;
  }
}

// Up to the positions of the model, dynamic scaling changes nothing, and a window of Qwen is its
// limit.
TEST(ArchitectureFiles, ScalingAndWindowsBeginAtTheirLimit) {
  const TemporaryFolder folder;
  const auto logits = [&](const nlohmann::json& more, const Ids& ids) {
    TinyGguf file = tiny("qwen2", std::nullopt);
    file.tiny.more = more;
    file.write(folder.path());
    return LlamaReference(load_llama(folder.path())).run(ids);
  };
  const std::vector<double> plain = logits(nlohmann::json::object(), twelve);
  const nlohmann::json window = {
      {"use_sliding_window", true}, {"sliding_window", 12}, {"max_window_layers", 0}};
  EXPECT_EQ(logits({{"rope_scaling", {{"type", "dynamic"}, {"factor", 4}}}}, twelve), plain);
  EXPECT_EQ(logits(window, twelve), plain);
  Ids longer = twelve;
  longer.push_back(1);
  EXPECT_THROW(logits(window, longer), Error);
  EXPECT_NO_THROW(logits(nlohmann::json::object(), longer));
  EXPECT_THROW(logits({{"rope_scaling", {{"type", "dynamic"}, {"factor", 4}}}}, Ids(33, 5)), Error);
  EXPECT_NE(logits({{"rope_scaling", {{"type", "yarn"}, {"factor", 4}}}}, twelve), plain);
  EXPECT_NO_THROW(logits({{"rope_scaling", {{"type", "yarn"}, {"factor", 4}}}}, Ids(33, 5)));
}

// Worked by hand: two heads of two elements, the first of which is normalised to a root mean square
// of 1 and multiplied by the weights.
TEST(ArchitectureFiles, HeadsAreNormalisedEach) {
  const float gains[] = {2, 10};
  const WeightView weights{DType::f32, 1, 2, reinterpret_cast<const std::byte*>(gains)};
  TraceMatrix x(1, 4);
  x.values = {3, 4, 0, 8};
  const TraceMatrix y = stages::head_norm(stages::Weights(std::nullopt), weights, x, 0);
  const double first = std::sqrt(12.5), second = std::sqrt(32);
  EXPECT_NEAR(y.values[0], 2 * 3 / first, 1e-12);
  EXPECT_NEAR(y.values[1], 10 * 4 / first, 1e-12);
  EXPECT_NEAR(y.values[2], 0, 1e-12);
  EXPECT_NEAR(y.values[3], 10 * 8 / second, 1e-12);
}

}  // namespace
}  // namespace greta::test::architectures_test
