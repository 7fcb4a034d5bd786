// Protects: --trace-layers allows for the rounding of quantised weights where products may round
// them, and nowhere else: by the rows of a pass with its padding, by the type, and by the format.
#include "kernels/reference/rounded_weights.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/llama/stage_judge.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::rounded_weights_test {
namespace {

// A weight is rounded once, with a scale that A's type does not have twice; q4_k's two terms are up
// to three times as large.
TEST(RoundedProducts, HaveTheErrorOfTheirFormat) {
  using enum WeightFormat;
  constexpr double f16 = 0x1p-11, bf16 = 0x1p-8;
  for (const auto& [format, of_f16, of_bf16] :
       {std::tuple(int4, 1, 1), std::tuple(int8, 1, 1), std::tuple(q4_0, 1, 2),
        std::tuple(q8_0, 1, 2), std::tuple(q4_k, 4, 4), std::tuple(q6_k, 2, 2),
        std::tuple(mxfp4, 0, 0)}) {
    SCOPED_TRACE(traits(format).name);
    EXPECT_EQ(kernels::rounding_of_weights(format, DType::f16, 1024), of_f16 * f16 * 8);
    EXPECT_EQ(kernels::rounding_of_weights(format, DType::bf16, 1024), of_bf16 * bf16 * 8);
    EXPECT_EQ(kernels::rounding_of_weights(format, DType::f16, 16), of_f16 * f16 * 4);
  }
}

// Far more than that of f32; weights that are decoded before have none.
TEST(RoundedProducts, HaveAnErrorOfTheirOwn) {
  std::vector<std::byte> row(2 * 34, std::byte{7});
  for (const std::size_t block : {0U, 34U}) store_element(DType::f16, row.data() + block, 0, 0.3);
  WeightView view{DType::f16, 1, 64, row.data()};
  view.blocks = BlockFormat::q8_0;
  TraceMatrix x(1, 64);
  std::fill(x.values.begin(), x.values.end(), 1);
  const auto error = [&](bool rounded, DType type) {
    return products_of(stages::Weights(type, rounded), view, Factor{x}).at(0, 0).absolute;
  };
  const auto norm = products_of(stages::Weights(DType::f16), view, Factor{x}).at(0, 0).norm;
  EXPECT_EQ(error(false, DType::f16), 0);
  EXPECT_DOUBLE_EQ(error(true, DType::f16), 0x1p-11 * 8 * norm);
  EXPECT_DOUBLE_EQ(error(true, DType::bf16), 2 * 0x1p-8 * 8 * norm);
  view.decoded = true;
  EXPECT_EQ(error(true, DType::f16), 0);
}

class RoundedPasses : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    TinyGguf file;
    file.tiny = {.dim = 64, .hidden = 96, .layers = 1, .heads = 8, .kv_heads = 4, .vocab = 300};
    file.blocks = BlockFormat::q8_0;
    file.write(folder_.path());
    model_ = load_llama(folder_ / "model.gguf");
    model_.config.max_positions = 512;
  }
  std::unique_ptr<Runtime> open(bool allowed) const {
    RuntimeOptions options;
    options.device = GetParam();
    options.open.cache_directory = compiled_kernels();
    options.rounded_weights = allowed;
    return Runtime::open(options).value();
  }
  /// Returns the trace of a pass with this number of tokens, from a runtime with the permission or
  /// without it.
  LlamaTrace trace(bool allowed, DType type, std::int64_t tokens) {
    const auto runtime = open(allowed);
    LlamaOptions llama;
    llama.capacity = 512;
    LlamaRunner runner(*runtime, upload_weights(*runtime, model_, type), llama);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7 % 300);
    return runner.trace(ids);
  }

  TemporaryFolder folder_;
  LlamaModel model_;
};

TEST_P(RoundedPasses, AreThoseOfManyRowsOf16Bits) {
  const auto rounds = [&](bool allowed, DType type, std::int64_t tokens) {
    return trace(allowed, type, tokens).layers[0].rounded_weights;
  };
  EXPECT_TRUE(rounds(true, DType::f16, 129));
  EXPECT_FALSE(rounds(true, DType::f16, 128));
  EXPECT_FALSE(rounds(true, DType::f32, 129));
  EXPECT_FALSE(rounds(false, DType::f16, 129));
}

// Of one token, products are exact and so are the questions about chains.
TEST_P(RoundedPasses, AskForChainsOfTheirOwn) {
  const auto runtime = open(true);
  LlamaOptions llama;
  llama.capacity = 512;
  LlamaRunner runner(*runtime, upload_weights(*runtime, model_, DType::f16), llama);
  for (const std::int64_t tokens : {1, 256}) {
    std::size_t rounded = 0, products = 0;
    for (const auto& [chain, answer, instead] : runner.pass(tokens).chains()) {
      products += chain.op == "rope_kv" ? 0 : 1;
      rounded += chain.attribute("math", "exact") == "rounded_weights" ? 1 : 0;
    }
    EXPECT_GT(products, 1U);
    EXPECT_EQ(rounded, tokens > 128 ? products : 0U);
  }
}

// A product that is further from FP64 than exact ones can be passes where weights may be rounded,
// and only there.
TEST_P(RoundedPasses, HaveBoundsOfTheirOwn) {
  const LlamaTraceCheck check(model_, {DType::f16, DType::f16, DType::f16, DType::f32});
  for (const auto& [allowed, tokens] : {std::pair{true, 129}, {true, 12}, {false, 129}}) {
    SCOPED_TRACE(tokens);
    LlamaTrace made = trace(allowed, DType::f16, tokens);
    EXPECT_FALSE(first_failure(check.check(made)));
    const auto expected_norm = [&] {
      const TraceMatrix& x = made.layers[0][LlamaStage::attn_norm];
      return products_of(stages::Weights(DType::f16), model_.weights.layers[0].wv, Factor{x});
    }();
    double& v = made.layers[0][LlamaStage::v].row(0)[0];
    const double more = 0x1p-11 * 4 * expected_norm.at(0, 0).norm;  // half of the bound's term
    v = expected_norm.at(0, 0).value + more;
    const auto wrong = first_failure(check.check(made));
    const bool found = wrong && wrong->stage == LlamaStage::v;
    EXPECT_EQ(found, !(allowed && tokens > 128));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RoundedPasses, ::testing::Values("vulkan:0", "hip-host:0"),
                         device_name);

}  // namespace
}  // namespace greta::test::rounded_weights_test
