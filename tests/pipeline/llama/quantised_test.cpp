// Protects: a Llama whose matrices are quantised is multiplied as its weights are stored, in
// decoding and for prompts, with one format or several; every stage agrees with FP64, which decodes
// the same weights by itself, and so do the tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/fp8_files.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/pipeline/packed_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::quantised_llama_test {
namespace {

using Ids = std::vector<std::int32_t>;
const Ids prompt{1, 17, 250, 3, 99, 7, 7, 128, 40, 201, 12, 5};

/// What a model's file has.
struct Stored {
  const char* name;
  TinyGguf file;
};

TinyGguf of_size(std::int64_t dim, std::int64_t hidden, std::optional<BlockFormat> blocks) {
  TinyGguf file;
  file.tiny = {.dim = dim, .hidden = hidden, .layers = 2, .heads = 8, .kv_heads = 4, .vocab = 300};
  file.blocks = blocks;
  return file;
}

/// Formats alone, those of files named Q4_K_M, and formats that differ within each projection, with
/// and without a part of numbers.
std::vector<Stored> stored_models() {
  using enum BlockFormat;
  TinyGguf mixed = of_size(256, 512, q4_k);
  mixed.others = {{"v_proj", q6_k}, {"down_proj", q6_k}, {"lm_head", q6_k}};
  TinyGguf within = of_size(256, 256, q8_0);
  within.others = {{"k_proj", q4_0}, {"up_proj", q4_0}, {"layers.1.self_attn.v_proj", q4_k}};
  TinyGguf numbers = of_size(64, 96, std::nullopt);
  numbers.others = {{"q_proj", q8_0}, {"gate_proj", q8_0}, {"layers.0.self_attn.o_proj", q4_0}};
  TinyGguf others = of_size(256, 512, q5_k);  // as in files named Q3_K_M and Q2_K
  others.others = {{"q_proj", q3_k},  {"v_proj", q2_k},    {"o_proj", iq4_xs},  {"gate_proj", q3_k},
                   {"up_proj", q6_k}, {"down_proj", q5_k}, {"lm_head", iq4_xs}, {"embed", q2_k}};
  TinyGguf blocks = of_size(64, 96, iq4_nl);  // where rows are no multiples of 256
  blocks.others = {{"k_proj", q5_0}, {"v_proj", q5_1}, {"down_proj", q4_1}, {"up_proj", q8_0}};
  TinyGguf powers = of_size(256, 512, mxfp4);
  powers.others = {{"k_proj", tq1_0}, {"o_proj", tq2_0}, {"up_proj", tq2_0}};
  TinyGguf tied = of_size(64, 96, q4_0);
  tied.tiny.tied = true;
  return {{"q8_0", of_size(64, 96, q8_0)},
          {"q4_0, tied", tied},
          {"q4_k", of_size(256, 256, q4_k)},
          {"q6_k", of_size(256, 256, q6_k)},
          {"q4_k and q6_k", mixed},
          {"several in a projection", within},
          {"others of 256", others},
          {"others of 32", blocks},
          {"numbers in a projection", numbers},
          {"mxfp4 and digits of three values", powers}};
}

class QuantisedLlama : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { runtime_ = open_runtime(GetParam()); }
  LlamaModel load(const TinyGguf& file) {
    file.write(folder_.path());
    return load_llama(folder_ / "model.gguf");
  }
  std::unique_ptr<LlamaRunner> runner(const LlamaModel& model, DType dtype) {
    LlamaOptions options;
    options.capacity = 32;
    return std::make_unique<LlamaRunner>(*runtime_, upload_weights(*runtime_, model, dtype),
                                         options);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Runtime> runtime_;
};

/// Returns the launches of an operation in a pass.
std::size_t count_of(const PipelineGraph& pass, const char* op) {
  return static_cast<std::size_t>(std::count_if(
      pass.operations().begin(), pass.operations().end(), [&](const RecordedOperation& one) {
        return one.prepared != nullptr && one.prepared->problem.op == op;
      }));
}

TEST_P(QuantisedLlama, EveryStageIsWithinItsBound) {
  for (const Stored& stored : stored_models()) {
    SCOPED_TRACE(stored.name);
    const LlamaModel model = load(stored.file);
    for (const DType type : {DType::f32, DType::f16}) {
      const auto llama = runner(model, type);
      const LlamaTraceCheck check(model, {type, type, type, DType::f32});
      for (const Ids& ids : {prompt, Ids{250}}) {
        const auto wrong = first_failure(check.check(llama->trace(ids)));
        EXPECT_FALSE(wrong) << wrong->text();
      }
    }
  }
}

TEST_P(QuantisedLlama, TokensAreThoseOfFp64) {
  for (const Stored& stored : stored_models()) {
    SCOPED_TRACE(stored.name);
    const LlamaModel model = load(stored.file);
    LlamaReference reference(model, DType::f32);
    const auto llama = runner(model, DType::f32);
    std::vector<double> want = reference.run(prompt);
    llama->feed(prompt);
    for (int step = 0; step < 6; ++step) {
      const std::vector<float> got = llama->logits();
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 1e-3) << "step " << step << ", token " << i;
      }
      const Ids next{
          static_cast<std::int32_t>(std::max_element(want.begin(), want.end()) - want.begin())};
      EXPECT_EQ(llama->likeliest().front(), next.front());
      llama->feed(next);
      want = reference.run(next);
    }
  }
}

// Projections that are quantised on loading, with scales of either type, and blocks that are
// decoded because the user asks for it.
TEST_P(QuantisedLlama, QuantisedOnLoadingAsWell) {
  TinyLlama{.dim = 128, .hidden = 256, .heads = 8, .kv_heads = 4}.write(folder_.path());
  for (const Quantisation how :
       {Quantisation::q8_0, Quantisation::q4_0, Quantisation::int4, Quantisation::mxfp4}) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(std::string(to_string(type)) + " " + std::to_string(static_cast<int>(how)));
      LlamaModel model = load_llama(folder_.path());
      ASSERT_EQ(quantise(model, how, type).quantised, 14);
      const auto llama = runner(model, type);
      EXPECT_EQ(count_of(llama->pass(1), "quantized_gemm"), 8U);
      // Gates and residuals are epilogues.
      EXPECT_EQ(count_of(llama->pass(1), "silu_mul"), 0U);
      EXPECT_EQ(count_of(llama->pass(1), "add") + count_of(llama->pass(1), "add_rmsnorm"), 0U);
      const LlamaTraceCheck check(model, {type, type, type, DType::f32});
      for (const Ids& ids : {prompt, Ids{250}}) {
        const auto wrong = first_failure(check.check(llama->trace(ids)));
        EXPECT_FALSE(wrong) << wrong->text();
      }
    }
  }
  // Blocks that no product reads are quantised, too.
  for (const auto& [how, products] :
       {std::pair{Quantisation::decoded, 0U}, {Quantisation::q8_0, 4U}, {Quantisation::int4, 4U}}) {
    TinyGguf file = stored_models()[3].file;
    file.tiny.layers = 1;
    if (how != Quantisation::decoded) file.blocks = BlockFormat::q5_k;
    LlamaModel model = load(file);
    quantise(model, how, DType::f16);
    const auto llama = runner(model, DType::f16);
    EXPECT_EQ(count_of(llama->pass(1), "quantized_gemm"), products);
    const LlamaTraceCheck check(model, {DType::f16, DType::f16, DType::f16, DType::f32});
    const auto wrong = first_failure(check.check(llama->trace(prompt)));
    EXPECT_FALSE(wrong) << wrong->text();
  }
}

// Integers in groups with zero points.
TEST_P(QuantisedLlama, CheckpointsOfAwqAndGptq) {
  for (const char* method : {"awq", "gptq", "compressed-tensors"}) {
    for (const std::int64_t group : {64, 128}) {
      for (const DType type : {DType::f16, DType::bf16}) {
        SCOPED_TRACE(method + std::to_string(group));
        TinyPacked packed;
        packed.method = method;
        packed.group = group;
        packed.sym = packed.compressed();  // as it lies in the file
        packed.write(folder_.path());
        const LlamaModel model = load_llama(folder_.path());
        const auto llama = runner(model, type);
        EXPECT_EQ(count_of(llama->pass(1), "quantized_gemm"), 8U);
        const LlamaTraceCheck check(model, {type, type, type, DType::f32});
        for (const Ids& ids : {prompt, Ids{250}}) {
          const auto wrong = first_failure(check.check(llama->trace(ids)));
          EXPECT_FALSE(wrong) << wrong->text();
        }
      }
    }
  }
}

// Activation order: columns of activations are gathered before products, once for queries, keys and
// values if they share the order, and not at all before `down`.
TEST_P(QuantisedLlama, CheckpointsOfGptqInActivationOrder) {
  for (const auto& [apart, gathered] : {std::pair{false, 6U}, {true, 12U}}) {
    SCOPED_TRACE(apart ? "apart" : "shared");
    TinyPacked packed;
    packed.method = "gptq";
    packed.desc_act = true;
    packed.apart = apart;
    packed.bits = apart ? 4 : 8;
    packed.write(folder_.path());
    LlamaModel model = load_llama(folder_.path());
    const DType type = apart ? DType::bf16 : DType::f16;
    const auto llama = runner(model, type);
    EXPECT_EQ(count_of(llama->pass(16), "gather_columns"), gathered);
    const auto& operations = llama->pass(16).operations();
    EXPECT_TRUE(std::any_of(operations.begin(), operations.end(), [&](const auto& one) {
      return one.label == (apart ? "layer 1 gate columns" : "layer 1 gate_up columns");
    }));
    LlamaOptions options;
    options.capacity = 32;
    const auto needed = llama_needs(*runtime_, model.config, type, options, 1).weights;
    EXPECT_GE(needed, weight_bytes(model.config, type));
    EXPECT_LT(needed, weight_bytes(model.config, type) + 4096);  // units of allocations
    const LlamaTraceCheck check(model, {type, type, type, DType::f32});
    for (const Ids& ids : {prompt, Ids{250}}) {
      const auto wrong = first_failure(check.check(llama->trace(ids)));
      EXPECT_FALSE(wrong) << wrong->text();
    }
  }
  LlamaModel model = load_llama(folder_.path());
  // Random weights have a permutation, too.
  const auto random = random_weights(*runtime_, model.config, DType::f16, 3);
  std::vector<std::int32_t> order(128);
  const Tensor& on_device = random.layers[0].wo.order;
  ASSERT_TRUE(runtime_->download(on_device, std::as_writable_bytes(std::span(order))));
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), 128U);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  quantise(model, Quantisation::decoded, DType::f16);
  EXPECT_EQ(count_of(runner(model, DType::f16)->pass(1), "gather_columns"), 0U);
}

// Activations are quantised, too, so each product has a launch of `quantize` before it.
TEST_P(QuantisedLlama, Fp8OnLoading) {
  TinyLlama{.dim = 128, .hidden = 256, .heads = 8, .kv_heads = 4}.write(folder_.path());
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    SCOPED_TRACE(to_string(type));
    LlamaModel model = load_llama(folder_.path());
    ASSERT_EQ(quantise(model, Quantisation::fp8, type).quantised, 14);
    const auto llama = runner(model, type);
    EXPECT_EQ(count_of(llama->pass(1), "scaled_gemm"), 8U);
    EXPECT_EQ(count_of(llama->pass(1), "quantize"), 8U);
    const LlamaTraceCheck check(model, {type, type, type, DType::f32});
    for (const Ids& ids : {prompt, Ids{250}}) {
      const auto wrong = first_failure(check.check(llama->trace(ids)));
      EXPECT_FALSE(wrong) << wrong->text();
    }
  }
}

// Norms and silu_mul that quantise their result, and those that are launches of their own: the
// stages of either are within their bounds of FP64, of a prompt and of decoding.
TEST_P(QuantisedLlama, StepsAreQuantisedInOneLaunchOrTwo) {
  TinyLlama{.dim = 128, .hidden = 256, .heads = 8, .kv_heads = 4}.write(folder_.path());
  const auto files = LookupFiles::none();
  for (const DType type : {DType::f32, DType::bf16}) {
    LlamaModel model = load_llama(folder_.path());
    ASSERT_EQ(quantise(model, Quantisation::fp8, type).quantised, 14);
    for (const bool fused : {true, false}) {
      SCOPED_TRACE(std::string(to_string(type)) + (fused ? " fused" : " parts"));
      runtime_ = Runtime::beside(*runtime_, files).value();
      for (const char* chain : {"norm_quantize", "add_norm_quantize", "silu_quantize"}) {
        ASSERT_TRUE(runtime_->use(std::string(chain) + (fused ? ": fused" : ": parts")));
      }
      const auto llama = runner(model, type);
      std::map<std::string, std::size_t> forms;
      for (const RecordedOperation& one : llama->pass(16).operations()) {
        if (one.prepared == nullptr || one.prepared->problem.op != "quantize") continue;
        ++forms[one.prepared->problem.attribute("fused", "none")];
      }
      EXPECT_EQ(forms.contains("rmsnorm"), fused);
      EXPECT_EQ(forms.contains("add_rmsnorm"), fused);
      EXPECT_EQ(forms.contains("silu_mul"), fused);
      // One norm is before the head, whose rows are not quantised here.
      EXPECT_EQ(count_of(llama->pass(16), "silu_mul"), fused ? 0U : 2U);
      EXPECT_EQ(count_of(llama->pass(16), "add_rmsnorm"), fused ? 0U : 3U);
      EXPECT_EQ(count_of(llama->pass(16), "rmsnorm"), fused ? 1U : 2U);
      const LlamaTraceCheck check(model, {type, type, type, DType::f32});
      for (const Ids& ids : {prompt, Ids{250}}) {
        const auto wrong = first_failure(check.check(llama->trace(ids)));
        EXPECT_FALSE(wrong) << wrong->text();
      }
    }
  }
}

// Scales of blocks, whose rows of queries, keys and values are not whole blocks, of rows and of all
// weights.
TEST_P(QuantisedLlama, CheckpointsOfFp8) {
  for (const TinyFp8& file : TinyFp8::kinds()) {
    SCOPED_TRACE(file.name());
    file.write(folder_.path());
    const LlamaModel model = load_llama(folder_.path());
    const auto llama = runner(model, DType::bf16);
    EXPECT_EQ(count_of(llama->pass(1), "quantize"), 8U) << "parts of a projection share their rows";
    const bool blocks = file.scales == TinyFp8::Scales::blocks;
    EXPECT_EQ(count_of(llama->pass(1), "scaled_gemm"), blocks ? 10U : 8U);
    for (const RecordedOperation& one : llama->pass(16).operations()) {
      if (one.prepared == nullptr || one.prepared->problem.op != "quantize") continue;
      EXPECT_EQ(one.prepared->problem.attribute("scales", "row") == "tensor", file.input_scales);
    }
    const LlamaTraceCheck check(model, {DType::bf16, DType::bf16, DType::bf16, DType::f32});
    for (const Ids& ids : {prompt, Ids{250}}) {
      const auto wrong = first_failure(check.check(llama->trace(ids)));
      EXPECT_FALSE(wrong) << wrong->text();
    }
  }
}

// A check that decoded weights by the device's own code would find nothing.
TEST_P(QuantisedLlama, ABrokenScaleIsFoundWhereItIs) {
  const LlamaModel model = load(stored_models()[0].file);
  LlamaDeviceWeights weights = upload_weights(*runtime_, model, DType::f32);
  const Tensor row = weights.layers[1].down.values.slice(0, 5, 1);
  std::vector<std::byte> bytes(row.bytes());
  runtime_->download(row, bytes).value();
  bytes[1] ^= std::byte{0x04};  // doubles or halves the scale of a block
  runtime_->upload(row, bytes).value();
  LlamaOptions options;
  options.capacity = 32;
  LlamaRunner llama(*runtime_, weights, options);
  const auto failure = first_failure(LlamaTraceCheck(model, {}).check(llama.trace(prompt)));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->layer, 1);
  EXPECT_EQ(failure->stage, LlamaStage::ffn_out);
  EXPECT_EQ(failure->col, 5);
}

// Weights that were decoded would give the same tokens, in more memory.
TEST_P(QuantisedLlama, WeightsAreMultipliedAsTheyAreStored) {
  const LlamaModel model = load(stored_models()[4].file);
  const auto llama = runner(model, DType::f16);
  for (const std::int64_t tokens : {1, 16}) {
    const PipelineGraph& pass = llama->pass(tokens);
    EXPECT_EQ(count_of(pass, "gemm"), 0U) << tokens;
    // q and k are of one format; of several tokens, all parts of such a projection are apart.
    const std::size_t layer = tokens == 1 ? 5 : 6;
    EXPECT_EQ(count_of(pass, "quantized_gemm"), 2 * layer + 1) << tokens;
  }
  const auto matrices = static_cast<double>(2 * (256 + 2 * 128 + 256 + 3 * 512) *
                                            256);  // weights, of 4.5 or 6.56 bits
  const double table = 2.0 * 300 * 256;
  const auto all = static_cast<double>(llama->weight_memory());
  EXPECT_LT(all, table + 300 * 256 + matrices * 0.75);
  EXPECT_GT(all, table + matrices * 0.56);
}

TEST_P(QuantisedLlama, MemoryAndProblemsAreKnownBefore) {
  const std::vector<Stored> all = stored_models();
  const std::set<std::string> mixed{"q4_k", "q6_k"}, others{"q6_k"};
  for (const auto& [stored, want] : {std::pair(all[4], mixed), {all[6], others}}) {
    SCOPED_TRACE(stored.name);
    const LlamaModel model = load(stored.file);
    LlamaOptions options;
    options.capacity = 32;
    const LlamaNeeds needs = llama_needs(*runtime_, model.config, DType::f16, options, 12);
    std::set<std::string> formats;
    for (const Problem& problem : llama_problems(*runtime_, model.config, DType::f16, options)) {
      if (problem.op == "quantized_gemm") formats.insert(problem.attribute("weights", "int4"));
    }
    EXPECT_EQ(formats, want);
    ASSERT_EQ(runtime_->device().memory().in_use_bytes, 0U);
    const auto llama = runner(model, DType::f16);
    llama->feed(prompt);
    llama->feed(Ids{1});
    const auto used = static_cast<double>(runtime_->device().memory().in_use_bytes);
    EXPECT_NEAR(static_cast<double>(needs.total()), used, 0.02 * used);
  }
}

// Random weights of a file's architecture are in its formats, and of a sane magnitude.
TEST_P(QuantisedLlama, RandomWeightsHaveTheFormats) {
  for (const Stored& stored : stored_models()) {
    SCOPED_TRACE(stored.name);
    const LlamaConfig config = load(stored.file).config;
    LlamaOptions options;
    options.capacity = 32;
    LlamaRunner llama(*runtime_, random_weights(*runtime_, config, DType::f16, 1), options);
    llama.feed(Ids{1});
    double squares = 0;
    for (const float logit : llama.logits()) squares += static_cast<double>(logit) * logit;
    const double size = std::sqrt(squares / static_cast<double>(config.vocab));
    EXPECT_GT(size, 0.3);
    EXPECT_LT(size, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantisedLlama, ::testing::Values("vulkan:0", "hip-host:0"),
                         device_name);

// Matrices side by side are stored together if they have one format. Of orders 1, 2 and 1, none
// are.
TEST(WeightBytes, CountsEachStoredOrder) {
  LlamaConfig config;
  config.dim = 256;
  config.hidden_dim = 512;
  config.layers = 1;
  config.heads = config.kv_heads = 4;
  config.head_dim = 64;
  config.vocab = 100;
  config.formats.layers.resize(1);
  LlamaLayerFormats& layer = config.formats.layers.front();
  const auto bytes = [&](int q, int k, int v) {
    const MatrixFormat int4{WeightFormat::int4, 128};
    layer.wq = layer.wk = layer.wv = int4;
    layer.wq.order = q;
    layer.wk.order = k;
    layer.wv.order = v;
    return weight_bytes(config, DType::f16);
  };
  const std::uint64_t without = bytes(0, 0, 0), order = 4 * 256;
  EXPECT_EQ(bytes(1, 1, 1), without + order);
  EXPECT_EQ(bytes(1, 2, 2), without + 2 * order);
  EXPECT_EQ(bytes(1, 2, 1), without + 3 * order);
}

}  // namespace
}  // namespace greta::test::quantised_llama_test
