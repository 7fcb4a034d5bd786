// Protects: a Llama whose quantised matrices are stored in panels has the logits of rows and stages
// within their bounds of FP64, from checkpoints of AWQ and GPTQ and quantised on loading; which
// matrices may have panels; and that panels are used where winners of all products with a matrix
// say so, without being asked for.
#include "runtime/pipeline/llama/packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "db/tuned_db.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/pipeline/packed_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::packing_test {
namespace {

using Ids = std::vector<std::int32_t>;
const Ids prompt{1, 17, 250, 3, 99, 7, 7, 128, 40, 201, 12, 5};
const std::vector<CountedPass> passes{{1, 1, 8}, {1, 16, 1}};

/// Returns the products of a pass, and of these those with panels.
struct Products {
  std::size_t all = 0, panels = 0;
};
Products products_of(const PipelineGraph& pass) {
  Products products;
  for (const RecordedOperation& one : pass.operations()) {
    if (one.prepared == nullptr) continue;
    const std::string& op = one.prepared->problem.op;
    if (op != "quantized_gemm" && op != "quantized_grouped_gemm" && op != "experts") continue;
    ++products.all;
    products.panels += one.prepared->problem.attribute("packing", "rows") == "panels" ? 1 : 0;
  }
  return products;
}

class LlamaInPanels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { runtime_ = open_runtime(GetParam()); }
  std::unique_ptr<LlamaRunner> runner(const LlamaModel& model) {
    LlamaOptions options;
    options.capacity = 32;
    return std::make_unique<LlamaRunner>(*runtime_, upload_weights(*runtime_, model, DType::f16),
                                         options);
  }
  /// Expects that all products of the model have panels then, and the same results.
  void expect_equal(LlamaModel& model) {
    std::vector<float> logits;
    for (const WeightsAs how : {WeightsAs::rows, WeightsAs::panels}) {
      const auto decided = pack_matrices(*runtime_, model.config, DType::f16, passes, how);
      const auto llama = runner(model);
      llama->feed(prompt);
      const auto products = products_of(llama->pass(1));
      EXPECT_GT(products.all, 0U);
      EXPECT_EQ(products.panels, how == WeightsAs::rows ? 0U : products.all);
      if (how == WeightsAs::rows) {
        EXPECT_TRUE(decided.empty());
        logits = llama->logits();
        continue;
      }
      EXPECT_EQ(llama->logits(), logits);
      const LlamaTraceCheck check(model, {DType::f16, DType::f16, DType::f16, DType::f32});
      for (const Ids& ids : {prompt, Ids{250}}) {
        const auto wrong = first_failure(check.check(llama->trace(ids)));
        EXPECT_FALSE(wrong) << wrong->text();
      }
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_P(LlamaInPanels, HasTheLogitsOfRows) {
  for (const auto& [method, bits, desc_act] :
       {std::tuple{"awq", 4, false}, {"gptq", 8, false}, {"gptq", 4, true}}) {
    SCOPED_TRACE(method);
    TinyPacked packed;
    packed.method = method;
    packed.bits = bits;
    packed.desc_act = desc_act;
    packed.write(folder_.path());
    LlamaModel model = load_llama(folder_.path());
    expect_equal(model);
  }
}

TEST_P(LlamaInPanels, AlsoIfItIsQuantisedOnLoading) {
  TinyLlama{.dim = 128, .hidden = 256, .heads = 8, .kv_heads = 4}.write(folder_.path());
  for (const Quantisation how : {Quantisation::int4, Quantisation::mxfp4}) {
    LlamaModel model = load_llama(folder_.path());
    quantise(model, how, DType::f16);
    expect_equal(model);
  }
}

/// Each matrix is there twice while its rows become panels, before there are caches.
TEST_P(LlamaInPanels, NeedsALargestMatrixTwiceWhileItIsLoaded) {
  TinyLlama{.dim = 128, .hidden = 512, .heads = 8, .kv_heads = 4}.write(folder_.path());
  LlamaModel model = load_llama(folder_.path());
  quantise(model, Quantisation::int4, DType::f16);
  const auto needs = [&] {
    return llama_needs(*runtime_, model.config, DType::f16, {.capacity = 32}, 12);
  };
  LlamaNeeds rows = needs();
  EXPECT_EQ(rows.repacking, 0U);
  pack_in_panels(model.config);
  LlamaNeeds panels = needs();
  EXPECT_EQ(panels.repacking, 2U * 512 * 128 / 2);  // gates and ups
  EXPECT_EQ(panels.weights, rows.weights);
  panels.caches = panels.buffers = panels.passes = 0;  // those of a small model are larger
  EXPECT_EQ(panels.total(), panels.weights + panels.repacking);
  DeviceInfo device = runtime_->device().info();
  device.memory_bytes = panels.total() - 1;
  EXPECT_THROW(panels.check(device), Error);
  const auto weights = upload_weights(*runtime_, model, DType::f16);
  const auto memory = runtime_->device().memory();
  EXPECT_EQ(memory.in_use_bytes, panels.weights);
  EXPECT_GE(memory.peak_bytes, panels.total());
}

/// By the operation for few tokens, by grouped products, and decoded.
TEST_P(LlamaInPanels, AlsoItsExperts) {
  TinyLlama{.dim = 128, .hidden = 64, .heads = 8, .kv_heads = 4, .kind = "mixtral"}.write(
      folder_.path());
  for (const char* rule : {"expert_ffn: fused", "expert_ffn: quantised", "expert_ffn: gated"}) {
    SCOPED_TRACE(rule);
    SetUp();
    runtime_->use(rule).value();
    LlamaModel model = load_llama(folder_.path());
    quantise(model, Quantisation::mxfp4, DType::f16);
    expect_equal(model);
    EXPECT_TRUE(model.config.formats.layers[1].expert_gate_up.panels);
    EXPECT_TRUE(model.config.formats.layers[1].expert_down.panels);
  }
}

/// What decodes matrices counts as products do.
TEST_P(LlamaInPanels, PassesThatDecodeExpertsCount) {
  TinyLlama{.dim = 128, .hidden = 64, .heads = 8, .kv_heads = 4, .kind = "mixtral"}.write(
      folder_.path());
  LlamaModel model = load_llama(folder_.path());
  quantise(model, Quantisation::mxfp4, DType::f16);
  const auto reason = [&] {
    const auto decided =
        pack_matrices(*runtime_, model.config, DType::f16, passes, WeightsAs::measured);
    const auto experts = std::find_if(decided.begin(), decided.end(), [](const MatrixPacking& one) {
      return one.name == "experts";
    });
    if (experts == decided.end()) return std::string("there are no experts");
    EXPECT_EQ(experts->matrices, 2);
    return experts->choice.reason;
  };
  EXPECT_EQ(reason(), "rows: 2 of 2 products are not measured in both packings");
  SetUp();
  runtime_->use("expert_ffn: parts").value();
  const std::string parts = reason();
  EXPECT_TRUE(parts.ends_with("products are not measured in both packings")) << parts;
}

TEST_P(LlamaInPanels, PartsMustBeWholePanels) {
  // Gates and ups of 264 rows are together whole panels, but not each; 264 are no whole groups.
  TinyLlama{.dim = 128, .hidden = 264, .heads = 8, .kv_heads = 4}.write(folder_.path());
  LlamaModel model = load_llama(folder_.path());
  quantise(model, Quantisation::int4, DType::f16);
  const auto decided =
      pack_matrices(*runtime_, model.config, DType::f16, passes, WeightsAs::panels);
  ASSERT_EQ(decided.size(), 3U);
  EXPECT_EQ(decided[0].name, "qkv");
  EXPECT_EQ(decided[0].choice.reason, "panels: forced");
  EXPECT_EQ(decided[0].matrices, 2);
  EXPECT_EQ(decided[2].name, "gate_up");
  EXPECT_EQ(decided[2].choice.reason,
            "rows: its parts are no whole panels of 16 rows of one format");
  EXPECT_TRUE(model.config.formats.layers[1].wk.panels);
  EXPECT_FALSE(model.config.formats.layers[1].up.panels);
}

TEST_P(LlamaInPanels, IsRefusedWithoutSuchMatrices) {
  TinyLlama{.dim = 64, .hidden = 96, .heads = 8, .kv_heads = 4}.write(folder_.path());
  LlamaModel model = load_llama(folder_.path());
  quantise(model, Quantisation::q8_0, DType::f16);
  EXPECT_THROW(pack_matrices(*runtime_, model.config, DType::f16, passes, WeightsAs::panels),
               Error);
  EXPECT_TRUE(
      pack_matrices(*runtime_, model.config, DType::f16, passes, WeightsAs::measured).empty());
}

/// A winner that takes this long, within 1 %.
StoredWinner measured(const Problem& problem, const DeviceInfo& device, double us) {
  StoredWinner result;
  result.problem = problem;
  result.device = device;
  result.provenance = {"0.1.0", "templates", device.driver, device.compiler,
                       "2026-11-20T12:00:00Z"};
  result.winner.config = Catalog::built_in().at(problem.op).default_config(problem, device);
  result.winner.default_us = us;
  result.winner.rounds = 11;
  result.winner.measurement.median_us = us;
  result.winner.measurement.low_us = 0.99 * us;
  result.winner.measurement.high_us = 1.01 * us;
  result.winner.verdict.passed = true;
  return result;
}

TEST_P(LlamaInPanels, ByMeasuredWinnersOfAllProducts) {
  TinyLlama{.dim = 128, .hidden = 256, .heads = 8, .kv_heads = 4}.write(folder_.path());
  LlamaModel model = load_llama(folder_.path());
  quantise(model, Quantisation::int4, DType::f16);
  const DeviceInfo& device = runtime_->device().info();
  Contents contents;
  contents.devices.push_back({device, "2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z"});
  LlamaConfig in_panels = model.config;
  pack_matrices(*runtime_, in_panels, DType::f16, passes, WeightsAs::panels);
  std::vector<Problem> seen;
  const auto add = [&](const LlamaConfig& config, double us) {
    for (const CountedPass& pass : passes) {
      for (const auto& one : llama_operations(*runtime_, config, DType::f16, {}, pass.tokens)) {
        // Down projections have no winners of the prompt.
        const bool down = one.problem.op == "quantized_gemm" && one.problem.dim("k") == 256;
        if (one.problem.op != "quantized_gemm" || (down && pass.tokens > 1)) continue;
        if (std::count(seen.begin(), seen.end(), one.problem) > 0) continue;
        seen.push_back(one.problem);
        contents.results.push_back(measured(one.problem, device, us));
      }
    }
  };
  add(model.config, 10);
  add(in_panels, 8);
  TunedDb::open(folder_ / "own.db", TunedDb::Mode::read_write).write(contents);
  LookupFiles files = LookupFiles::none();
  files.own = folder_ / "own.db";
  const auto tuned = Runtime::beside(*runtime_, files).value();
  const auto decided = pack_matrices(*tuned, model.config, DType::f16, passes, WeightsAs::measured);
  ASSERT_EQ(decided.size(), 4U);
  for (const MatrixPacking& one : decided) {
    const bool down = one.name == "ffn_out";
    EXPECT_EQ(one.choice.measured, !down) << one.choice.reason;
    EXPECT_EQ(one.choice.packing == kernels::WeightPacking::panels, !down) << one.name;
  }
  LlamaRunner llama(*tuned, upload_weights(*tuned, model, DType::f16), {.capacity = 32});
  llama.feed(prompt);
  const auto products = products_of(llama.pass(1));
  EXPECT_EQ(products.all - products.panels, 2U);  // down projections
}

INSTANTIATE_TEST_SUITE_P(Devices, LlamaInPanels, ::testing::Values("vulkan:0", "hip-host:0"),
                         device_name);

}  // namespace
}  // namespace greta::test::packing_test
