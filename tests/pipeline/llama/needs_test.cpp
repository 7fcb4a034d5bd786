// Protects: the requirements of a Llama are known before anything is allocated or compiled: memory
// as the allocator counts it, and every problem that a text of any length uses.
#include "runtime/pipeline/llama/needs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/pipeline/llama/runner.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"

namespace greta::test::needs_test {
namespace {

using Sizes = std::vector<std::int64_t>;

const LlamaModel& model() {
  static const LlamaModel loaded = load_llama(GRETA_TEST_DATA "/stories260K/stories260K.bin");
  return loaded;
}

TEST(LlamaNeeds, AreWhatIsAllocatedForAModel) {
  for (const char* device : {"vulkan:0", "hip-host:0"}) {
    for (const auto& [batch, capacity, prompt] : {std::tuple{1, 256, 5}, {2, 100, 70}}) {
      const auto runtime = open_runtime(device);
      LlamaOptions options;
      options.batch = batch;
      options.capacity = capacity;
      const LlamaNeeds needs = llama_needs(*runtime, model().config, DType::f32, options, prompt);
      EXPECT_EQ(runtime->kernels().size(), 0U);
      EXPECT_EQ(runtime->device().memory().in_use_bytes, 0U);
      LlamaRunner llama(*runtime, upload_weights(*runtime, model(), DType::f32), options);
      llama.feed(std::vector<std::int32_t>(static_cast<std::size_t>(batch * prompt), 1));
      llama.feed(std::vector<std::int32_t>(static_cast<std::size_t>(batch), 1));
      const auto used = static_cast<double>(runtime->device().memory().in_use_bytes);
      EXPECT_NEAR(static_cast<double>(needs.total()), used, 0.02 * used) << device << " " << batch;
      EXPECT_GE(static_cast<double>(needs.passes + needs.buffers), 0.03 * used) << "not negligible";
      // Several runners share the weights.
      const LlamaNeeds twice =
          llama_needs(*runtime, model().config, DType::f32, options, prompt, 2);
      EXPECT_EQ(twice.total(), 2 * needs.total() - needs.weights);
    }
  }
}

TEST(LlamaNeeds, OfAModelThatDoesNotFitAreSaidInFull) {
  const auto runtime = open_runtime("vulkan:0");
  const LlamaNeeds needs = llama_needs(*runtime, model().config, DType::f32, {}, 5);
  DeviceInfo device = runtime->device().info();
  device.memory_bytes = needs.total();
  needs.check(device);
  for (const std::uint64_t less : {std::uint64_t{1}, needs.passes, needs.buffers}) {
    device.memory_bytes = needs.total() - less;
    EXPECT_THROW(needs.check(device), Error) << less;
  }
  LlamaNeeds large;
  large.weights = std::uint64_t{13} << 30;
  large.caches = large.buffers = large.passes = std::uint64_t{1} << 30;
  large.capacity = 4096;
  large.runners = 2;
  device.memory_bytes = std::uint64_t{8} << 30;
  try {
    large.check(device);
    FAIL() << "19 GiB in 8 GiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::out_of_memory);
    EXPECT_EQ(std::string(error.what()),
              "the model does not fit vulkan:0: it needs 19.00 GiB (weights 13.00; caches of 4096 "
              "tokens 1.00, passes 1.00, inputs and outputs 1.00, these 2 times), of 8.00 GiB");
  }
}

TEST(LlamaNeeds, OfAModelBeyondTheDeviceAreNotWorkedOutToTheEnd) {
  const auto runtime = open_runtime("vulkan:0");
  LlamaConfig config = *named_llama("llama-2-7b");
  config.layers = 100'000;
  const LlamaNeeds needs = llama_needs(*runtime, config, DType::f16, {}, 512);
  EXPECT_EQ(needs.passes, 0U);
  EXPECT_THROW(needs.check(runtime->device().info()), Error);
}

TEST(LlamaPasses, AreOfFewSizesAndHaveRoom) {
  EXPECT_EQ(llama_pass_sizes(512), (Sizes{1, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(llama_pass_sizes(100), (Sizes{1, 16, 32, 64, 100}));
  EXPECT_EQ(llama_pass_sizes(16), (Sizes{1, 16}));
  EXPECT_EQ(llama_pass_sizes(7), (Sizes{1, 7}));
  EXPECT_EQ(llama_pass_sizes(1), (Sizes{1}));
  EXPECT_EQ(llama_passes(70, 100, 100), (Sizes{100}));
  EXPECT_EQ(llama_passes(20, 20, 100), (Sizes{16, 1, 1, 1, 1}));
  for (const std::int64_t most : {1, 7, 16, 100, 128}) {
    const Sizes sizes = llama_pass_sizes(most);
    for (std::int64_t room = 1; room <= 200; room += 3) {
      for (std::int64_t count = 1; count <= room; ++count) {
        std::int64_t fed = 0;
        for (const std::int64_t size : llama_passes(count, room, most)) {
          ASSERT_TRUE(std::binary_search(sizes.begin(), sizes.end(), size)) << size;
          ASSERT_LE(fed + size, room) << count << " of " << room;
          ASSERT_LT(fed, count);
          fed += std::min(size, count - fed);
        }
        ASSERT_EQ(fed, count) << room;
      }
    }
  }
}

// It was an endless loop.
TEST(LlamaPasses, TokensWithoutRoomAreRefused) {
  EXPECT_THROW(llama_passes(2, 1, 16), Error);
  EXPECT_THROW(llama_passes(1, 0, 16), Error);
}

TEST(LlamaPasses, CapacitiesAreThoseThatAreChosen) {
  LlamaConfig config = model().config;
  for (const std::int64_t most : {100, 256, 1000, 4096}) {
    config.max_positions = most;
    std::set<std::int64_t> chosen;
    for (std::int64_t tokens = 1; tokens <= most; ++tokens) {
      const std::int64_t capacity = llama_capacity(config, tokens);
      ASSERT_GE(capacity, tokens);
      chosen.insert(capacity);
    }
    EXPECT_EQ(llama_capacities(config), Sizes(chosen.begin(), chosen.end()));
  }
}

// Queries, keys and values are a single GEMM, for one token and for many.
TEST(LlamaNeeds, PassesProjectOnce) {
  const auto runtime = open_runtime("vulkan:0");
  const LlamaConfig& config = model().config;
  LlamaOptions options;
  options.capacity = 16;
  std::set<std::int64_t> projected;
  for (const Problem& problem : llama_problems(*runtime, config, DType::f32, options)) {
    const bool layer = problem.op == "gemm" && problem.dim("n") != config.vocab;
    if (layer && problem.dim("k") == config.dim && problem.dim("n") != 2 * config.hidden_dim &&
        problem.attribute("epilogue", "") == "") {
      EXPECT_EQ(problem.dim("n"), config.q_dim() + 2 * config.kv_dim());
      projected.insert(problem.dim("m"));
    }
  }
  EXPECT_EQ(projected, (std::set<std::int64_t>{1, 16}));
}

// Prompts of any length and any remaining capacity use no other problems.
TEST(LlamaNeeds, ProblemsAreAllThatAreAskedFor) {
  const auto runtime = open_runtime("vulkan:0");
  LlamaOptions options;
  options.capacity = 100;
  const auto problems = llama_problems(*runtime, model().config, DType::f32, options);
  EXPECT_EQ(runtime->kernels().size(), 0U);
  for (const Precompiled& one : runtime->precompile(problems, 2)) {
    EXPECT_FALSE(one.failure) << one.problem;
  }
  const std::size_t prepared = runtime->prepared().size();
  LlamaRunner llama(*runtime, upload_weights(*runtime, model(), DType::f32), options);
  for (const std::size_t prompt : {1, 3, 17, 50, 83, 99, 100}) {
    llama.reset();
    llama.feed(std::vector<std::int32_t>(prompt, 1));
    const std::size_t rest = std::min<std::size_t>(100 - prompt, 27);
    if (rest > 0) llama.feed(std::vector<std::int32_t>(rest, 1));
  }
  EXPECT_EQ(runtime->prepared().size(), prepared);
}

}  // namespace
}  // namespace greta::test::needs_test
