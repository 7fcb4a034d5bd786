// Protects: sequences of different lengths in one batch, with caches in pages. Each sequence's
// tokens are those of the same prompt alone, whenever others begin and end and whichever pages they
// share; a page is shared exactly by prompts with the same tokens, and free when the last one ends.
#include "runtime/pipeline/llama/batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::batch_test {
namespace {

using Ids = std::vector<std::int32_t>;

const Ids story{1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395,
                317, 426, 338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322, 265,
                282, 295, 433, 426, 385, 328, 432, 358, 394, 261, 370, 432};

/// Returns the beginning of the story, and then other tokens.
Ids prompt_of(std::size_t common, std::size_t own, std::int32_t seed = 0) {
  Ids ids(story.begin(), story.begin() + static_cast<std::ptrdiff_t>(common));
  for (std::size_t i = 0; i < own; ++i) {
    ids.push_back(
        static_cast<std::int32_t>((static_cast<std::size_t>(seed) * 37 + i * 91) % 500 + 3));
  }
  return ids;
}

TEST(PagePool, SharesFullPagesOfEqualTokens) {
  PagePool pool(16, 16);
  const auto one = pool.take(prompt_of(40, 0), 50);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->shared, 0);
  EXPECT_EQ(one->pages.size(), 4U);
  EXPECT_EQ(pool.free(), 12);
  // The same 32 tokens, and then others: two pages are the same.
  const auto two = pool.take(prompt_of(35, 20), 60);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->shared, 32);
  EXPECT_TRUE(std::equal(one->pages.begin(), one->pages.begin() + 2, two->pages.begin()));
  EXPECT_NE(one->pages[2], two->pages[2]);
  EXPECT_EQ(pool.free(), 10);
  // Equal tokens after other ones are in other positions.
  Ids late = prompt_of(0, 16);
  late.insert(late.end(), story.begin(), story.begin() + 17);
  const auto three = pool.take(late, 33);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->shared, 0);
  pool.give_back(*one);
  EXPECT_EQ(pool.free(), 9) << "two pages are those of another sequence";
  const auto four = pool.take(prompt_of(40, 0), 40);
  EXPECT_EQ(four->shared, 32) << "which still has them";
  for (const auto& lease : {two, three, four}) pool.give_back(*lease);
  EXPECT_EQ(pool.free(), 16);
  EXPECT_EQ(pool.take(prompt_of(40, 0), 40)->shared, 0) << "nobody has them any more";
}

// Of blocks A, B, C and D: after A, D is another page than after C.
TEST(PagePool, APageIsThatOfAllTokensBeforeIt) {
  PagePool pool(16, 16);
  const auto blocks = [](std::int32_t first, std::int32_t second) {
    Ids ids(16, first);
    ids.resize(32, second);
    ids.push_back(9);
    return ids;
  };
  const auto ab = pool.take(blocks(1, 2), 33), cd = pool.take(blocks(3, 4), 33);
  const auto ad = pool.take(blocks(1, 4), 33);
  EXPECT_EQ(ad->shared, 16);
  EXPECT_EQ(ad->pages[0], ab->pages[0]);
  EXPECT_NE(ad->pages[1], cd->pages[1]);
  EXPECT_EQ(pool.take(blocks(1, 4), 33)->shared, 32);
}

TEST(PagePool, KeepsTheLastTokenOfAPromptToItself) {
  PagePool pool(8, 16);
  const auto one = pool.take(prompt_of(32, 0), 33), two = pool.take(prompt_of(32, 0), 33);
  EXPECT_EQ(two->shared, 16) << "the second page has the last token, whose logits are computed";
  EXPECT_NE(one->pages[1], two->pages[1]);
}

TEST(PagePool, GivesAllPagesOrNone) {
  PagePool pool(3, 16);
  EXPECT_FALSE(pool.take(prompt_of(5, 0), 49));
  EXPECT_EQ(pool.free(), 3);
  EXPECT_TRUE(pool.take(prompt_of(5, 0), 48));
  EXPECT_FALSE(pool.take(prompt_of(5, 0), 6));
}

LlamaBatchOptions small_batch() {
  LlamaBatchOptions options;
  options.sequences = 3;
  options.capacity = 96;
  options.page = 16;
  options.pages = 12;  // of 18, if all sequences were as long as they can be
  options.most_rows = 64;
  return options;
}

/// Random lengths and few pages: each pass feeds the next tokens of its sequences, in an order in
/// which no page is shared before it is written, and within its rows and its cache.
TEST(BatchScheduler, FeedsEachTokenOnceAndInOrder) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    const LlamaBatchOptions options = small_batch();
    BatchScheduler scheduler(options);
    std::uint32_t state = seed * 2654435761U;
    const auto below = [&state](std::uint32_t most) {
      state = state * 1664525U + 1013904223U;
      return (state >> 8) % most;
    };
    for (int i = 0; i < 12; ++i) {
      const std::size_t common = below(41), own = 1 + below(55);
      scheduler.add({prompt_of(common, own, static_cast<std::int32_t>(below(3))), 1 + below(40)});
    }
    std::set<std::int32_t> written;  // slots of pages
    std::vector<std::int64_t> fed(12, -1);
    while (const auto pass = scheduler.next()) {
      ASSERT_LE(pass->lanes.size(), static_cast<std::size_t>(pass->shape.batch));
      ASSERT_LE(pass->shape.rows(), std::max(options.most_rows, options.sequences));
      for (const BatchLane& lane : pass->lanes) {
        const LlamaSequence& sequence = scheduler.sequences()[lane.sequence];
        std::int64_t& position = fed[lane.sequence];
        if (position < 0) position = sequence.shared;
        EXPECT_EQ(lane.first, position);
        EXPECT_LE(lane.first + pass->shape.tokens, 96);
        position += lane.count;
        for (std::int64_t t = 0; t < position; ++t) {
          const std::int32_t slot = sequence.lease.pages[static_cast<std::size_t>(t / 16)] * 16 +
                                    static_cast<std::int32_t>(t % 16);
          if (t >= lane.first) written.insert(slot);
          ASSERT_TRUE(written.contains(slot)) << "token " << t << " is read before it is written";
        }
      }
      const Ids tokens(pass->lanes.size(), 7);
      for (const std::size_t number : scheduler.finish(*pass, tokens)) {
        if (scheduler.sequences()[number].end != SequenceEnd::none) fed[number] = 1 << 20;
      }
    }
    EXPECT_EQ(scheduler.pool().free(), options.pages) << "all pages are free at the end";
    EXPECT_LE(scheduler.most_pages(), options.pages);
    for (const LlamaSequence& sequence : scheduler.sequences()) {
      const auto got = static_cast<std::int64_t>(sequence.generated.size());
      EXPECT_EQ(got, std::min(sequence.request.tokens, 96 - sequence.prompt_size() + 1));
      EXPECT_EQ(sequence.end,
                got == sequence.request.tokens ? SequenceEnd::tokens : SequenceEnd::capacity);
    }
  }
}

TEST(BatchScheduler, PacksPromptsWithLittlePadding) {
  LlamaBatchOptions options;
  options.sequences = 16;
  options.capacity = 1024;
  options.pages = 256;
  const auto first_pass = [&](std::vector<std::size_t> prompts) {
    BatchScheduler scheduler(options);
    std::int32_t seed = 0;
    for (const std::size_t size : prompts) scheduler.add({prompt_of(0, size, ++seed), 4});
    return scheduler.next()->shape;
  };
  // 8 prompts of 20 tokens are 16 lanes of 16 in place of 8 rows of the longest power of two.
  EXPECT_EQ(first_pass({20, 20, 20, 20, 20, 20, 20, 20}), (LlamaPassShape{16, 16, 16}));
  EXPECT_EQ(first_pass({512}), (LlamaPassShape{2, 256, 16}));
  EXPECT_EQ(first_pass({250, 250}), (LlamaPassShape{2, 256, 16}));
  EXPECT_EQ(first_pass({64, 64, 128}), (LlamaPassShape{4, 64, 16}));
  EXPECT_EQ(first_pass({1}), (LlamaPassShape{1, 16, 16}));
}

TEST(BatchScheduler, RefusesWhatItCanNeverRun) {
  LlamaBatchOptions options = small_batch();
  options.pages = 4;
  BatchScheduler scheduler(options);
  expect_refused([&] { scheduler.add({{}, 1}); }, "there are no tokens to feed");
  expect_refused([&] { scheduler.add({prompt_of(0, 97), 1}); }, "more than the KV capacity of 96");
  expect_refused(
      [&] {
        scheduler.add({prompt_of(0, 60), 6});
      },
      "need 5 pages, all sequences have 4");
  EXPECT_EQ(scheduler.add({prompt_of(0, 60), 5}), 0U);
  const auto pass = scheduler.next();
  EXPECT_THROW(scheduler.finish(*pass, Ids{-1}), Error);
}

class Batch : public ::testing::TestWithParam<const char*> {
 protected:
  static const LlamaModel& model() {
    static const LlamaModel loaded = load_llama(GRETA_TEST_DATA "/stories260K/stories260K.bin");
    return loaded;
  }
  void SetUp() override { runtime_ = open_runtime(GetParam()); }

  /// Returns what follows a prompt alone.
  Ids alone(const LlamaDeviceWeights& weights, const LlamaRequest& request,
            const SamplerOptions* sampler = nullptr) {
    LlamaOptions options;
    options.capacity = 96;
    options.sample = sampler != nullptr;
    LlamaRunner llama(*runtime_, weights, options);
    if (sampler != nullptr) llama.sample(*sampler);
    llama.feed(request.prompt);
    Ids ids;
    while (true) {
      const std::int32_t id = llama.likeliest().front();
      const auto& ends = request.ends;
      if (std::find(ends.begin(), ends.end(), id) != ends.end()) return ids;
      ids.push_back(id);
      if (static_cast<std::int64_t>(ids.size()) == request.tokens) return ids;
      if (llama.position() == llama.capacity()) return ids;
      llama.feed({&ids.back(), 1});
    }
  }

  std::unique_ptr<Runtime> runtime_;
};

// Five sequences for three places: prompts of 1 to 90 tokens, two that share pages, one that ends
// with a token, one that fills its cache.
std::vector<LlamaRequest> mixed_requests() {
  return {{{1}, 9},
          {prompt_of(40, 3), 4},
          {prompt_of(40, 9, 1), 12},
          {prompt_of(5, 0), 20, {298}},
          {prompt_of(20, 70, 2), 40}};
}

TEST_P(Batch, EachSequenceIsThatOfItsPromptAlone) {
  const LlamaDeviceWeights weights = upload_weights(*runtime_, model(), DType::f32);
  LlamaBatch batch(*runtime_, weights, small_batch());
  for (int round = 0; round < 2; ++round) {
    const auto requests = mixed_requests();
    for (const LlamaRequest& request : requests) batch.add(request);
    std::size_t together = 0;
    while (const auto step = batch.step()) together = std::max(together, step->pass.lanes.size());
    EXPECT_GE(together, 3U);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (round == 0 || i == 2) {
        EXPECT_EQ(batch.sequence(i).generated, alone(weights, requests[i])) << i;
      }
    }
    EXPECT_EQ(batch.sequence(2).shared, 32);
    EXPECT_EQ(batch.sequence(3).end, SequenceEnd::end);
    EXPECT_EQ(batch.sequence(3).generated.size(), 5U) << "the published story goes on with 298";
    EXPECT_EQ(batch.sequence(4).end, SequenceEnd::capacity);
    EXPECT_EQ(batch.sequence(4).generated.size(), 7U);
    EXPECT_EQ(batch.scheduler().pool().free(), 12);
    batch.reset();
  }
}

// The same with the other way to append to pages, and without graphs.
TEST_P(Batch, AppendsByKvUpdateAsWell) {
  ASSERT_TRUE(runtime_->use("rope_kv: parts"));
  const LlamaDeviceWeights weights = upload_weights(*runtime_, model(), DType::f32);
  LlamaBatchOptions options = small_batch();
  options.graph = false;
  LlamaBatch batch(*runtime_, weights, options);
  const std::vector<LlamaRequest> requests{{prompt_of(40, 3), 4}, {prompt_of(40, 5, 1), 5}};
  for (const LlamaRequest& request : requests) batch.add(request);
  std::size_t updates = 0;
  while (const auto step = batch.step()) {
    for (const RecordedOperation& one : batch.pass(step->pass.shape).operations()) {
      updates += one.label.ends_with("kv_update") && !one.label.ends_with("rope + kv_update");
    }
  }
  EXPECT_GE(updates, 10U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(batch.sequence(i).generated, alone(weights, requests[i])) << i;
  }
}

// Two sequences of the same prompt, which share pages, differ by their seeds.
TEST_P(Batch, DrawsWhatEachSeedDrawsAlone) {
  const LlamaDeviceWeights weights = upload_weights(*runtime_, model(), DType::f32);
  LlamaBatchOptions options = small_batch();
  options.sample = true;
  LlamaBatch batch(*runtime_, weights, options);
  std::vector<LlamaRequest> requests{{prompt_of(40, 0), 6}, {prompt_of(40, 0), 6}, {{1}, 6}};
  requests[0].seed = 5;
  requests[1].seed = std::uint64_t{3} << 32U | 6;
  requests[2].seed = 5;
  batch.sample({.temperature = 1.5, .top_k = 50});
  for (const LlamaRequest& request : requests) batch.add(request);
  while (batch.step()) {
  }
  EXPECT_NE(batch.sequence(0).generated, batch.sequence(1).generated);
  for (std::size_t i = 0; i < 3; ++i) {
    const SamplerOptions sampler{.temperature = 1.5, .seed = requests[i].seed, .top_k = 50};
    EXPECT_EQ(batch.sequence(i).generated, alone(weights, requests[i], &sampler)) << i;
  }
}

// Biases of a projection, and norms of heads, which only the fused append computes.
TEST_P(Batch, RunsOtherArchitectures) {
  const TemporaryFolder folder;
  for (const char* kind : {"qwen2", "qwen3"}) {
    SCOPED_TRACE(kind);
    TinyGguf file;
    file.tiny = {.dim = 64, .hidden = 96, .layers = 2, .heads = 8, .kv_heads = 4, .vocab = 300};
    file.tiny.kind = kind;
    file.write(folder.path());
    const LlamaModel tiny = load_llama(folder.path());
    const LlamaDeviceWeights weights = upload_weights(*runtime_, tiny, DType::f32);
    LlamaBatchOptions options = small_batch();
    options.capacity = std::min<std::int64_t>(96, tiny.config.max_positions);
    LlamaBatch batch(*runtime_, weights, options);
    Ids first = prompt_of(0, 18), second = prompt_of(0, 25);
    for (Ids* ids : {&first, &second}) {
      for (std::int32_t& id : *ids) id %= 300;
    }
    batch.add({first, 3});
    batch.add({second, 5});
    while (const auto step = batch.step()) {
    }
    EXPECT_EQ(batch.sequence(1).shared, 16);
    LlamaOptions one;
    one.capacity = options.capacity;
    for (std::size_t i = 0; i < 2; ++i) {
      LlamaRunner llama(*runtime_, weights, one);
      llama.feed(i == 0 ? first : second);
      Ids ids{llama.likeliest().front()};
      while (ids.size() < (i == 0 ? 3U : 5U)) {
        llama.feed({&ids.back(), 1});
        ids.push_back(llama.likeliest().front());
      }
      EXPECT_EQ(batch.sequence(i).generated, ids) << i;
    }
  }
}

// Every pass of a model with weights in one format and in several, whose queries, keys and values
// are matrices of their own: the largest logit of each lane is that of FP64 for all tokens up to
// the lane's last one, with either way to append to pages.
TEST_P(Batch, EachLaneAgreesWithFp64) {
  const TemporaryFolder folder;
  TinyGguf file;
  file.tiny = {.dim = 64, .hidden = 96, .layers = 2, .heads = 8, .kv_heads = 4, .vocab = 300};
  file.blocks = BlockFormat::q8_0;
  for (const char* rule : {"rope_kv: fused", "rope_kv: parts"}) {
    SCOPED_TRACE(rule);
    SetUp();
    ASSERT_TRUE(runtime_->use(rule));
    file.others = {{"v_proj", BlockFormat::q4_0}};
    file.write(folder.path());
    const LlamaModel tiny = load_llama(folder / "model.gguf");
    LlamaBatchOptions options = small_batch();
    options.capacity = tiny.config.max_positions;
    LlamaBatch batch(*runtime_, upload_weights(*runtime_, tiny, DType::f32), options);
    for (const std::size_t own : {3, 12, 9}) {
      Ids ids = prompt_of(16, own, static_cast<std::int32_t>(own));
      for (std::int32_t& id : ids) id %= 300;
      batch.add({ids, 3});
    }
    LlamaReference reference(tiny, DType::f32);
    std::size_t lanes = 0;
    while (const auto step = batch.step()) {
      const std::vector<float> largest = batch.largest_logits();
      for (std::size_t i = 0; i < step->pass.lanes.size(); ++i, ++lanes) {
        const BatchLane& lane = step->pass.lanes[i];
        const LlamaSequence& sequence = batch.sequence(lane.sequence);
        Ids ids;
        for (std::int64_t t = 0; t < lane.first + lane.count; ++t) ids.push_back(sequence.token(t));
        reference.reset();
        const std::vector<double> logits = reference.run(ids);
        EXPECT_NEAR(largest[i], *std::max_element(logits.begin(), logits.end()), 1e-3)
            << "sequence " << lane.sequence << ", token " << ids.size() - 1;
      }
    }
    EXPECT_GE(lanes, 9U);
    EXPECT_EQ(batch.sequence(1).shared, 16);
    EXPECT_EQ(batch.sequence(2).shared, 16);
  }
}

TEST_P(Batch, KnowsItsMemoryAndItsPasses) {
  const LlamaBatchOptions options = small_batch().for_model(model().config);
  const auto requests = mixed_requests();
  const auto counts = count_passes(options, requests);
  std::set<LlamaPassShape> shapes;
  std::int64_t passes = 0;
  for (const auto& [shape, count] : counts) {
    shapes.insert(shape);
    passes += count;
  }
  LlamaBatch batch(*runtime_, upload_weights(*runtime_, model(), DType::f32), options);
  batch.prepare(shapes);
  const LlamaNeeds needs = llama_needs(*runtime_, model().config, DType::f32, options, shapes);
  EXPECT_GE(needs.caches, batch.cache_memory());
  EXPECT_LE(needs.caches, batch.cache_memory() + 5 * 2 * 256);
  EXPECT_GE(needs.passes, batch.pass_memory());
  for (LlamaRequest request : requests) {
    request.ends.clear();
    batch.add(std::move(request));
  }
  while (const auto step = batch.step()) {
    --passes;
    EXPECT_TRUE(shapes.contains(step->pass.shape));
    for (const float logit : batch.largest_logits()) EXPECT_TRUE(std::isfinite(logit));
  }
  EXPECT_EQ(passes, 0);
  expect_refused([&] { batch.add({{512}, 1}); }, "outside of the vocabulary");
  expect_refused([&] { batch.sample({}); }, "LlamaOptions::sample is not set");
  LlamaBatchOptions bad = small_batch();
  bad.page = 24;
  expect_refused([&] { bad.for_model(model().config); }, "pages of 24 tokens");
}

INSTANTIATE_TEST_SUITE_P(Devices, Batch, ::testing::Values("vulkan:0", "hip-host:0"), device_name);

}  // namespace
}  // namespace greta::test::batch_test
