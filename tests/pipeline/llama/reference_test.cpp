// Protects: the FP64 reference of Llama. It reproduces the published text of a published model.

#include "runtime/pipeline/llama/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::reference_test {
namespace {

using test::expect_refused;
using test::TemporaryFolder;
using test::TinyLlama;
using Ids = std::vector<std::int32_t>;

const std::string stories = std::string(GRETA_TEST_DATA) + "/stories260K/";

const Ids from_bos{403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426,
                   338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322, 265, 282, 295, 433,
                   426, 385, 328, 432, 358, 394, 261, 370, 432, 352, 266, 268, 388, 426, 338,
                   391, 266, 267, 337, 335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415};
const Ids from_once{432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338, 401, 396, 267,
                    337, 410, 408, 419, 292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432,
                    358, 394, 261, 370, 432, 352, 266, 268, 388, 426, 338, 391, 266, 267, 337,
                    335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415, 426, 13,  438, 310};

/// The likeliest tokens after a prompt, and the smallest difference between the two best logits.
struct Generated {
  Ids ids;
  double gap = 1e300;
};

Generated generate(const LlamaModel& model, const Ids& prompt, std::size_t count,
                   std::optional<DType> weights = std::nullopt) {
  LlamaReference reference(model, weights);
  Generated result;
  std::vector<double> logits = reference.run(prompt);
  while (true) {
    const auto best = std::max_element(logits.begin(), logits.end());
    const double most = *best;
    result.ids.push_back(static_cast<std::int32_t>(best - logits.begin()));
    *best = -1e300;
    result.gap = std::min(result.gap, most - *std::max_element(logits.begin(), logits.end()));
    if (result.ids.size() == count) return result;
    logits = reference.run(std::span(&result.ids.back(), 1));
  }
}

// The published text of a published model proves every formula, layout and the order of the
// weights.
TEST(LlamaReference, Stories260KTellsItsStory) {
  const LlamaModel model = load_llama(stories + "stories260K.bin");
  const Generated story = generate(model, {1}, 60);
  EXPECT_EQ(story.ids, from_bos);
  EXPECT_NEAR(story.gap, 0.133, 0.0005);
  const auto tokenizer = load_tokenizer(stories + "tok512.bin", model.config);
  const Generated other = generate(model, tokenizer->encode("Once upon a time", true), 60);
  EXPECT_EQ(other.ids, from_once);
  EXPECT_NEAR(other.gap, 0.071, 0.0005);
}

TEST(LlamaReference, F16WeightsTellTheSameStory) {
  const LlamaModel model = load_llama(stories + "stories260K.bin");
  const Ids ids = generate(model, {1}, 40, DType::f16).ids;
  EXPECT_EQ(ids, Ids(from_bos.begin(), from_bos.begin() + 40));
}

std::string f16_copy(const WeightView& view) {
  std::string bytes(view.elements() * 2, '\0');
  for (std::size_t i = 0; i < view.elements(); ++i) {
    store_element(DType::f16, reinterpret_cast<std::byte*>(bytes.data()), i,
                  load_element(view.dtype, view.data, i));
  }
  return bytes;
}

class TinyReference : public testing::Test {
 protected:
  LlamaModel load(const TinyLlama& tiny) {
    tiny.write(folder_.path());
    return load_llama(folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(TinyReference, PrefillAndDecodeAreTheSame) {
  for (const bool tied : {false, true}) {
    TinyLlama tiny;
    tiny.tied = tied;
    const LlamaModel model = load(tiny);
    const Ids ids{1, 17, 299, 5, 5, 42};
    LlamaReference at_once(model), one_by_one(model), in_parts(model);
    LlamaTrace trace;
    const std::vector<double> last = at_once.run(ids, &trace);
    in_parts.run(std::span(ids).first(4));
    EXPECT_EQ(in_parts.run(std::span(ids).subspan(4)), last);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::vector<double> logits = one_by_one.run(std::span(ids).subspan(i, 1));
      const double* row = trace.logits.row(static_cast<std::int64_t>(i));
      EXPECT_EQ(logits, std::vector<double>(row, row + 300)) << i;
    }
  }
}

// Rounding weights to a type equals storing them in that type.
TEST_F(TinyReference, RoundedWeightsAreThoseOfARoundedModel) {
  const LlamaModel model = load(TinyLlama());
  const Ids ids{1, 17, 4};
  const std::vector<double> rounded = LlamaReference(model, DType::f16).run(ids);
  EXPECT_NE(rounded, LlamaReference(model).run(ids));
  std::vector<std::string> copies;  // must outlive the views
  LlamaModel small = model;
  std::vector<WeightView*> views{&small.weights.embedding, &small.weights.final_norm,
                                 &small.weights.head};
  for (LlamaLayer& layer : small.weights.layers) {
    for (WeightView* view : {&layer.attn_norm, &layer.wq, &layer.wk, &layer.wv, &layer.wo,
                             &layer.ffn_norm, &layer.gate, &layer.up, &layer.down}) {
      views.push_back(view);
    }
  }
  for (const WeightView* view : views) copies.push_back(f16_copy(*view));
  for (std::size_t i = 0; i < views.size(); ++i) {
    views[i]->dtype = DType::f16;
    views[i]->data = reinterpret_cast<const std::byte*>(copies[i].data());
  }
  EXPECT_EQ(LlamaReference(small).run(ids), rounded);
}

// The half layout equals the interleaved one with permuted rows of q and k, as in Hugging Face's
// conversion of Meta's weights.
TEST_F(TinyReference, RopeStylesAreThePermutationOfEachOther) {
  const LlamaModel half = load(TinyLlama());
  LlamaModel interleaved = half;
  interleaved.config.rope_style = RopeStyle::interleaved;
  std::vector<std::string> copies;
  copies.reserve(2 * half.weights.layers.size());
  for (LlamaLayer& layer : interleaved.weights.layers) {
    for (WeightView* view : {&layer.wq, &layer.wk}) {
      std::string& copy = copies.emplace_back(view->bytes(), '\0');
      const auto dim = static_cast<std::size_t>(half.config.head_dim);
      const std::size_t row_bytes = view->bytes() / static_cast<std::size_t>(view->rows);
      for (std::size_t row = 0; row < static_cast<std::size_t>(view->rows); ++row) {
        const std::size_t index = row % dim, from = row - index + index / 2 + index % 2 * (dim / 2);
        std::memcpy(copy.data() + row * row_bytes, view->data + from * row_bytes, row_bytes);
      }
      view->data = reinterpret_cast<const std::byte*>(copy.data());
    }
  }
  const Ids ids{1, 17, 299, 5};
  const auto a = LlamaReference(half).run(ids), b = LlamaReference(interleaved).run(ids);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12);
}

TEST_F(TinyReference, RefusesWhatTheModelDoesNotHave) {
  const LlamaModel model = load(TinyLlama());
  LlamaReference reference(model);
  expect_refused([&] { reference.run({}); }, "no tokens");
  expect_refused([&] { reference.run(Ids{300}); }, "token 300 is not one of");
  expect_refused([&] { reference.run(Ids{-1}); }, "token -1 is not one of");
  expect_refused([&] { reference.run(Ids(33, 1)); }, "more than the model's 32 positions");
  reference.run(Ids(32, 1));
  EXPECT_EQ(reference.position(), 32);
  expect_refused([&] { reference.run(Ids{1}); }, "1 tokens after 32");
  reference.reset();
  reference.run(Ids{1});
}

}  // namespace
}  // namespace greta::test::reference_test
