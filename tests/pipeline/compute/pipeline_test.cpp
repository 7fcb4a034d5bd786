// Protects: recorded sequences. Memory is shared correctly, contents may change between replays,
// and operations share a workspace with counters.
#include "runtime/pipeline/compute/pipeline.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/sampling/candidates.hpp"
#include "runtime/pipeline/compute/chains.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "tests/catalog.hpp"
#include "tests/pipeline/compute/cases.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::pipeline_test {
namespace {

class PipelineTest : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor floats(std::int64_t count, float value) {
    Tensor tensor = runtime_->allocate(DType::f32, {count}).value();
    const std::vector<float> values(static_cast<std::size_t>(count), value);
    runtime_->upload(tensor, std::as_bytes(std::span(values))).value();
    return tensor;
  }
  std::vector<float> read(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().elements()));
    runtime_->download(tensor, std::as_writable_bytes(std::span(values))).value();
    return values;
  }
  void replay(const PipelineGraph& graph) {
    queue_->replay(graph).value();
    queue_->synchronize().value();
  }

  std::unique_ptr<Runtime> runtime_ = test::open_runtime(GetParam());
  std::unique_ptr<Queue> queue_ = runtime_->queue().value();
};

// A chain of sums over temporaries that share an arena: the result shows any overlap of live ones.
TEST_P(PipelineTest, TemporariesShareMemoryAndKeepTheirContents) {
  const Tensor one = floats(64, 1), result = floats(64, 0);
  Pipeline pipeline(*runtime_);
  std::vector<Tensor> chain{pipeline.temporary(DType::f32, {64})};
  const Tensor early = chain.front();
  pipeline.add(one, one, early).value();
  for (int i = 0; i < 20; ++i) {
    chain.push_back(pipeline.temporary(DType::f32, {64}));
    pipeline.add(chain[chain.size() - 2], one, chain.back()).value();
  }
  pipeline.add(chain.back(), early, result).value();  // 22 + 2
  pipeline.temporary(DType::f32, {4096});             // never used
  pipeline.keep(chain[3]);
  const auto graph = pipeline.finish().value();
  for (int i = 0; i < 3; ++i) {
    replay(*graph);
    EXPECT_EQ(read(result), std::vector<float>(64, 24));
    EXPECT_EQ(read(chain[3]), std::vector<float>(64, 5));  // kept until the end
  }
  EXPECT_EQ(graph->memory().temporaries, 21U * 256);
  EXPECT_EQ(graph->memory().arena, 4U * 256);  // two of the chain, the first one, the kept one
}

// A kernel that loads its weights before the launch ahead of it has ended must not do so where the
// pipeline computes the weights.
TEST_P(PipelineTest, ComputedWeightsAreWaitedFor) {
  runtime_->use("gemm m=1: gemv").value();
  constexpr std::int64_t n = 64, k = 32;
  const Tensor x = floats(k, 1), result = floats(n, 0);
  const Tensor half = runtime_->allocate(DType::f32, {n, k}).value();
  Pipeline pipeline(*runtime_);
  const Tensor weights = pipeline.temporary(DType::f32, {n, k});
  pipeline.add(half, half, weights).value();
  pipeline.gemm(x.reshape({1, k}), weights, result.reshape({1, n}), {.layout = Layout::nt}).value();
  const auto graph = pipeline.finish().value();
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    const std::vector<float> values(n * k, value);
    runtime_->upload(half, std::as_bytes(std::span(values))).value();
    replay(*graph);
    EXPECT_EQ(read(result), std::vector<float>(n, 2 * value * k));
  }
}

// Equal chains of which one has its norm already are recorded by two alternatives, and listed so.
TEST_P(PipelineTest, EqualChainsAreListedAsTheyAreRecorded) {
  runtime_->use("gate_up: fused").value();
  const auto tensor = [&](const Shape& shape) {
    return runtime_->allocate(DType::f32, shape).value();
  };
  GateUp chain;
  chain.x = tensor({2, 64});
  chain.norm.weight = tensor({64});
  chain.weights = tensor({128, 64});
  GateUp with_norm = chain;
  with_norm.norm.result.numbers = tensor({2, 64});
  with_norm.norm.kept = true;
  Pipeline pipeline(*runtime_);
  EXPECT_FALSE(has_norm_apart(pipeline, chain_of(chain)));
  EXPECT_TRUE(pipeline.chains().empty()) << "nothing is recorded";
  for (const GateUp& one : {chain, with_norm, chain, with_norm}) record(pipeline, one);
  std::vector<std::string> listed;
  for (const ChosenChain& one : pipeline.chains()) listed.push_back(one.answer.config.variant);
  EXPECT_EQ(listed, (std::vector<std::string>{"fused", "gated"}));
  std::vector<std::string> labels;
  for (const RecordedProblem& one : pipeline.recorded()) labels.push_back(one.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"norm + gate_up + silu_mul", "gate_up + silu_mul",
                                              "norm + gate_up + silu_mul", "gate_up + silu_mul"}));
}

// The host writes staging memory between replays. Nothing else in the graph changes.
TEST_P(PipelineTest, StagingMemoryIsCopiedWithinTheGraph) {
  const Tensor staged = runtime_->allocate(DType::i32, {2}, Memory::staging).value();
  const Tensor ids = runtime_->allocate(DType::i32, {2}).value();
  std::vector<float> rows(10 * 8);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / 8);
  const Tensor table = runtime_->allocate(DType::f32, {10, 8}).value();
  runtime_->upload(table, std::as_bytes(std::span(rows))).value();
  const Tensor out = floats(16, 0),
               read_back = runtime_->allocate(DType::f32, {16}, Memory::staging).value();
  Pipeline pipeline(*runtime_);
  pipeline.copy(ids, staged).value();
  pipeline.embedding(ids, table, out.reshape({2, 8})).value();
  pipeline.copy(read_back, out).value();
  const auto graph = pipeline.finish().value();
  ASSERT_NE(staged.host(), nullptr);
  for (const std::int32_t first : {3, 7, 0}) {
    const std::int32_t wanted[] = {first, 9 - first};
    std::memcpy(staged.host(), wanted, sizeof wanted);
    replay(*graph);
    float values[16];
    std::memcpy(values, read_back.host(), sizeof values);
    EXPECT_EQ(values[0], static_cast<float>(first));
    EXPECT_EQ(values[15], static_cast<float>(9 - first));
  }
}

TEST_P(PipelineTest, WhatCantBeRecordedIsSaidAndLeavesTheRest) {
  const Tensor one = floats(64, 1), result = floats(64, 0);
  Pipeline pipeline(*runtime_), other(*runtime_);
  const Tensor unwritten = pipeline.temporary(DType::f32, {64});
  const Tensor foreign = other.temporary(DType::f32, {64});
  pipeline.add(one, one, result).value();
  EXPECT_EQ(pipeline.add(one, foreign, result).failure().message,
            "f32 [64] is a temporary of another pipeline");
  EXPECT_EQ(pipeline.add(one, one, one).failure().message,
            "add dtype=f32 out=f32 rows=1 cols=64: C is written and overlaps A");
  EXPECT_EQ(pipeline.add(one, floats(32, 1), result).failure().message,
            "add dtype=f32 out=f32 rows=1 cols=64: B is f32 [32], but it must be f32 of 1 x 64");
  EXPECT_EQ(queue_->add(one, unwritten, result).failure().message,
            "add dtype=f32 out=f32 rows=1 cols=64: B is a temporary of a pipeline that is not "
            "finished");
  EXPECT_EQ(queue_->copy(result, unwritten).failure().message,
            "copy: f32 [64] is a temporary of a pipeline that is not finished");
  replay(*pipeline.finish().value());
  EXPECT_EQ(read(result), std::vector<float>(64, 2));

  Pipeline bad(*runtime_);
  bad.label("layer 0 sum");
  bad.add(bad.temporary(DType::f32, {64}), one, result).value();
  EXPECT_EQ(bad.finish().failure().message,
            "layer 0 sum: A is a temporary that nothing wrote before");
  EXPECT_FALSE(unwritten.storage()->buffer);
  EXPECT_EQ(queue_->run(Problem{"fft", DType::f32, DType::f32, {}, {}}, {}).failure().message,
            "no operation fft");
}

// Work on tensors without memory: its problems and memory are known, and it is only rejected when
// it would run.
TEST_P(PipelineTest, SaysWhatItTakesBeforeAnythingIsThere) {
  const Tensor nowhere = Tensor::placeholder(DType::f32, {64});
  const Tensor result = Tensor::placeholder(DType::f32, {64});
  Pipeline pipeline(*runtime_);
  const Tensor sum = pipeline.temporary(DType::f32, {64});
  const Tensor wide = pipeline.temporary(DType::f32, {2, 4096});
  pipeline.label("first sum");
  pipeline.add(nowhere, nowhere, sum).value();
  pipeline.add(sum, nowhere, result).value();
  pipeline.argmax(Tensor::placeholder(DType::f32, {2, 512}), Tensor::placeholder(DType::i32, {2}))
      .value();
  EXPECT_FALSE(pipeline.add(wide, wide, wide.reshape({8192})));  // rejected and not counted
  const auto problems = pipeline.problems();
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].key(), "add dtype=f32 out=f32 rows=1 cols=64");
  EXPECT_EQ(problems[1].key(), "argmax dtype=f32 out=i32 rows=2 cols=512");
  const PipelineMemory memory = pipeline.memory().value();
  EXPECT_EQ(memory.arena, 256U);
  EXPECT_EQ(memory.temporaries, 256U);
  EXPECT_EQ(runtime_->kernels().size(), 0U);
  EXPECT_EQ(pipeline.finish().failure().message, "first sum: A has no memory");
  EXPECT_THROW(pipeline.keep(nowhere), Error);
  EXPECT_THROW(pipeline.keep({}), Error);

  Pipeline real(*runtime_);
  const Tensor one = floats(64, 1), out = floats(64, 0);
  const Tensor between = real.temporary(DType::f32, {64});
  real.add(one, one, between).value();
  real.add(between, one, out).value();
  const PipelineMemory expected = real.memory().value();
  const auto graph = real.finish().value();
  EXPECT_EQ(graph->memory().arena, expected.arena);
  EXPECT_EQ(graph->memory().workspace, expected.workspace);
  replay(*graph);
  EXPECT_EQ(read(out), std::vector<float>(64, 3));
}

// A pipeline gives the same results with a graph, without, and in pieces with timestamps.
TEST_P(PipelineTest, RunsAsAGraphOrOneByOneAndSaysWhatItRuns) {
  const Tensor one = floats(64, 1), result = floats(64, 0);
  for (const bool as_graph : {true, false}) {
    Pipeline pipeline(*runtime_);
    const Tensor sum = pipeline.temporary(DType::f32, {64});
    pipeline.label("first");
    pipeline.add(one, one, sum).value();
    pipeline.label("second");
    pipeline.add(sum, one, result).value();
    pipeline.copy(one, result).value();
    const auto graph = pipeline.finish({.graph = as_graph}).value();
    replay(*graph);
    EXPECT_EQ(read(result), std::vector<float>(64, 3));
    const auto times = graph->time(*queue_).value();  // 3 + 3 + 3
    EXPECT_EQ(read(result), std::vector<float>(64, 9));
    ASSERT_EQ(times.size(), 3U);
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_GE(times[i].us, 0);
      EXPECT_GE(times[i].start_us, i == 0 ? 0 : times[i - 1].start_us);
    }
    const auto lines = graph->explain();
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0].label, "first");
    EXPECT_EQ(lines[1].problem, "add dtype=f32 out=f32 rows=1 cols=64");
    EXPECT_EQ(lines[1].origin, "default");
    EXPECT_EQ(lines[1].config.substr(0, 5), "flat ");
    EXPECT_EQ(lines[2].problem, "copy");
    const std::vector<float> again(64, 1);
    runtime_->upload(one, std::as_bytes(std::span(again))).value();
  }
}

/// Returns a configuration of this variant that splits its work, so that its plan counts arrivals.
std::optional<Config> split_config(const Problem& problem, const DeviceInfo& device,
                                   const char* variant) {
  const Operation& kernel = built_in(problem.op);
  for (const Candidate& choice : sample_candidates(kernel, problem, device, variant, 200, 5)) {
    const auto plan = kernel.plan(choice.problem, device, choice.config);
    if (plan && plan->zeroed_bytes > 0) return choice.config;
  }
  return std::nullopt;
}

// The counters overlap in one workspace. Each operation leaves them zero for the next, and no
// partial sums overwrite them.
TEST_P(PipelineTest, OperationsWithCountersShareOneWorkspace) {
  const test::TemporaryFolder folder;
  const DeviceInfo info = runtime_->device().info();
  const std::pair<const char*, const char*> wanted[] = {
      {"argmax dtype=f32 out=i32 rows=70 cols=512", "split"},
      {"gemm dtype=f32 out=f32 m=2 n=96 k=512", "gemv"},
      {"attention dtype=f32 out=f32 batch=3 heads=4 kv_heads=2 q=1 kv=64 dim=16", "decode"},
      {"argmax dtype=f32 out=i32 rows=3 cols=4096", "split"},
  };
  std::vector<Problem> problems;
  for (const auto& [key, variant] : wanted) {
    problems.push_back(Problem::parse(key).value());
    const auto config = split_config(problems.back(), info, variant);
    ASSERT_TRUE(config) << key;
    test::store_winner(folder / "own.db", info, problems.back(), *config);
  }
  runtime_ = test::open_runtime(GetParam(), {folder / "own.db", {}});
  queue_ = runtime_->queue().value();

  std::vector<test::Loaded> loaded;
  Pipeline pipeline(*runtime_);
  for (const Problem& problem : problems) {
    loaded.push_back(test::load(*runtime_, problem, test::plain_shapes(problem), 21));
    pipeline.run(problem, loaded.back().operands).value();
  }
  const std::size_t workspace = pipeline.memory().value().workspace;
  const auto graph = pipeline.finish().value();
  EXPECT_EQ(graph->memory().workspace, workspace);  // as predicted
  std::size_t zeroed = 0, apart = 0;
  for (const auto& line : graph->operations()) {
    EXPECT_EQ(line.prepared->answer.origin, LookupOrigin::exact) << line.prepared->key;
    EXPECT_EQ(line.prepared->plan.zeroed_bytes() % 256, 0U);
    zeroed = std::max<std::size_t>(zeroed, line.prepared->plan.zeroed_bytes());
    apart += line.prepared->plan.workspace_bytes();
  }
  EXPECT_GT(zeroed, 256U);  // the first one's; counters of others are at its end
  EXPECT_LT(graph->memory().workspace, apart);

  // An output that a replay does not write must not keep the correct result of the previous one.
  const auto spoil_outputs = [&] {
    for (const test::Loaded& one : loaded) {
      const Tensor& out = one.operands.back();
      const auto elements = static_cast<std::size_t>(out.shape().elements());
      const std::vector<std::byte> spoilt(bytes_of(out.dtype(), elements), std::byte{0xFF});
      runtime_->upload(out, spoilt).value();
    }
  };
  std::vector<std::vector<std::byte>> first;
  for (int round = 0; round < 5; ++round) {
    spoil_outputs();
    replay(*graph);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      const auto specs = built_in(problems[i].op).tensors(problems[i]);
      const auto out = test::download(*runtime_, loaded[i].operands.back(), specs.back()).data;
      if (round == 0) {
        test::expect_right(*runtime_, problems[i], loaded[i], 21);
        first.push_back(out);
      }
      EXPECT_EQ(out, first[i]) << problems[i].key() << " changes in replay " << round;
    }
  }
  spoil_outputs();
  // The queue's workspace grows from operation to operation while earlier ones are in flight.
  for (std::size_t i = problems.size(); i-- > 0;) {
    queue_->run(problems[i], loaded[i].operands).value();
  }
  for (std::size_t i = 0; i < problems.size(); ++i) {
    queue_->run(problems[i], loaded[i].operands).value();
  }
  queue_->synchronize().value();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    test::expect_right(*runtime_, problems[i], loaded[i], 21);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDevice, PipelineTest, ::testing::ValuesIn(test::compute_devices()),
                         [](const auto& given) { return test::device_name(given.param); });

}  // namespace
}  // namespace greta::test::pipeline_test
