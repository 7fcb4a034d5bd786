// Protects: penalties of tokens that a sequence has: of one, of several, and in a batch whose rows
// change their sequences.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/pipeline/llama/batch.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"

namespace greta::test::penalties_test {
namespace {

using Ids = std::vector<std::int32_t>;

const Ids story{1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395,
                317, 426, 338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322, 265};

LlamaBatchOptions small_batch() {
  LlamaBatchOptions options;
  options.sequences = 3;
  options.capacity = 96;
  options.page = 16;
  options.pages = 12;  // of 18, if all sequences were as long as they can be
  options.most_rows = 64;
  return options;
}

class Penalties : public ::testing::TestWithParam<const char*> {
 protected:
  static const LlamaModel& model() {
    static const LlamaModel loaded = load_llama(GRETA_TEST_DATA "/stories260K/stories260K.bin");
    return loaded;
  }
  void SetUp() override { runtime_ = open_runtime(GetParam()); }

  /// Returns what follows a prompt alone.
  Ids alone(const LlamaDeviceWeights& weights, const LlamaRequest& request,
            const SamplerOptions& sampler) {
    LlamaOptions options;
    options.capacity = 96;
    options.sample = options.penalties = true;
    LlamaRunner llama(*runtime_, weights, options);
    llama.sample(sampler);
    llama.feed(request.prompt);
    Ids ids{llama.likeliest().front()};
    while (static_cast<std::int64_t>(ids.size()) < request.tokens) {
      llama.feed({&ids.back(), 1});
      ids.push_back(llama.likeliest().front());
    }
    return ids;
  }

  std::unique_ptr<Runtime> runtime_;
};

/// Logits of which tokens that the sequence has are penalised.
std::vector<double> penalised(const std::vector<float>& logits, std::int64_t vocab,
                              std::span<const Ids> sequences, const SamplerOptions& options) {
  std::vector<double> result(logits.begin(), logits.end());
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    std::map<std::int32_t, int> counts;
    for (const std::int32_t id : sequences[b]) ++counts[id];
    for (const auto& [id, count] : counts) {
      double& logit = result[b * static_cast<std::size_t>(vocab) + static_cast<std::size_t>(id)];
      logit = logit > 0 ? logit / options.repetition : logit * options.repetition;
      logit -= options.frequency * count + options.presence;
    }
  }
  return result;
}

// All tokens since the last reset count, prompt included, each as often as it occurs, and those of
// a sequence for its own logits alone.
TEST_P(Penalties, AreOfEarlierTokens) {
  LlamaOptions options;
  options.capacity = 64;
  options.batch = 2;
  const LlamaDeviceWeights weights = upload_weights(*runtime_, model(), DType::f32);
  LlamaRunner plain(*runtime_, weights, options);
  options.sample = options.penalties = true;
  LlamaRunner llama(*runtime_, weights, options);
  const SamplerOptions sampler{.repetition = 1.7, .frequency = 0.75, .presence = -0.5};
  llama.sample(sampler);
  const std::vector<std::vector<Ids>> texts{{{1, 403, 403, 407, 261, 5}, {1, 9, 403, 9, 9, 300}},
                                            {{1, 2, 3}, {1, 403, 77}}};
  for (const std::vector<Ids>& text : texts) {
    plain.reset();
    llama.reset();
    std::vector<Ids> fed(2);
    for (std::size_t first = 0; first < text[0].size(); first += first == 0 ? 2 : 1) {
      const std::size_t end = first + (first == 0 ? 2 : 1);
      Ids both;
      for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t i = first; i < end; ++i) {
          both.push_back(text[b][i]);
          fed[b].push_back(text[b][i]);
        }
      }
      plain.feed(both);
      llama.feed(both);
      const std::int64_t vocab = llama.config().vocab;
      const auto expected = penalised(plain.logits(), vocab, fed, sampler);
      const auto got = llama.logits();
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        worst = std::max(worst, std::abs(got[i] - expected[i]));
      }
      EXPECT_LT(worst, 1e-5) << end << " tokens";
      for (std::int64_t b = 0; b < 2; ++b) {
        const auto row = got.begin() + b * vocab;
        EXPECT_EQ(llama.likeliest()[static_cast<std::size_t>(b)],
                  std::max_element(row, row + vocab) - row);
      }
    }
  }
  expect_refused([&] { llama.sample({.repetition = 0}); }, "repetition penalty is 0");
  expect_refused([&] { llama.sample({.frequency = 101}); }, "frequency penalty is 101");
  expect_refused([&] { llama.sample({.presence = std::nan("")}); }, "presence penalty is nan");
}

// More sequences than lanes, so that rows of the history get other sequences, also after a reset.
TEST_P(Penalties, OfABatchAreOfEachSequenceAlone) {
  const LlamaDeviceWeights weights = upload_weights(*runtime_, model(), DType::f32);
  LlamaBatchOptions options = small_batch();
  options.sample = options.penalties = true;
  LlamaBatch batch(*runtime_, weights, options);
  const std::vector<LlamaRequest> requests{{story, 9},
                                           {Ids{1, 403, 407, 5}, 4},
                                           {{1}, 12},
                                           {Ids(story.begin(), story.begin() + 22), 7},
                                           {{1, 9}, 6}};
  SamplerOptions sampler{.repetition = 1.2, .frequency = 3, .presence = 20};
  for (int turn = 0; turn < 2; ++turn) {
    batch.sample(sampler);
    for (std::size_t i = turn; i < requests.size(); ++i) batch.add(requests[i]);
    while (batch.step()) {
    }
    for (std::size_t i = turn; i < requests.size(); ++i) {
      const Ids& ids = batch.sequence(i - turn).generated;
      EXPECT_EQ(ids, alone(weights, requests[i], sampler)) << i;
      std::set<std::int32_t> all(requests[i].prompt.begin(), requests[i].prompt.end());
      for (const std::int32_t id : ids) EXPECT_TRUE(all.insert(id).second) << id << " is repeated";
    }
    batch.reset();
  }
  LlamaBatchOptions without = small_batch();
  without.sample = true;
  LlamaBatch other(*runtime_, weights, without);
  expect_refused([&] { other.sample(sampler); }, "penalties is not set");
}

INSTANTIATE_TEST_SUITE_P(Devices, Penalties, ::testing::Values("vulkan:0", "hip-host:0"),
                         device_name);

}  // namespace
}  // namespace greta::test::penalties_test
