// Protects: the variant `matrix` in GLSL. No CPU driver of a stable distribution supports
// cooperative matrices, so the algorithm runs with emulated ones. With real ones it is compiled to
// valid SPIR-V.

#include <gtest/gtest.h>

#include <random>

#include "kernels/model/random.hpp"
#include "kernels/planning/head_sizes.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"
#include "tests/kernels/cooperative_gpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::attention_cooperative_test {
namespace {

using test::attention_problem;
using test::intel_products;
using test::nvidia_products;
using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(bound)));
}

/// Returns a problem with 16-bit inputs and at most `most` queries.
Problem random_problem(Random& random, DType in, const std::vector<std::int64_t>& dims,
                       std::int64_t most) {
  test::AttentionShape s;
  s.kv_heads = 1 + below(random, 2);
  s.heads = s.kv_heads * (1 + below(random, 3));
  s.queries = 1 + below(random, most);
  s.keys = s.queries + below(random, most);
  s.dim = dims[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(dims.size())))];
  s.causal = below(random, 2) == 1;
  Problem problem = attention_problem(s, in, below(random, 2) == 1 ? in : DType::f32);
  const std::pair<std::string, std::string> options[] = {{"v_dim", "32"},   {"window", "24"},
                                                         {"softcap", "2"},  {"sinks", "head"},
                                                         {"lse", "stored"}, {"page_size", "16"}};
  for (const auto& option : options) {
    if (option.first == "window" && !s.causal) continue;
    if (below(random, 3) == 0) problem.attributes.push_back(option);
  }
  return problem;
}

/// Returns the number of matrix operations of a subgroup per tile, each of which is compiled.
std::int64_t products(const Problem& problem, const Config& c) {
  const std::int64_t elements = problem.dim("dim") + v_dim_of(problem);
  return c["WQ"] / 16 * (c["BK"] / c["INSTR"]) * (elements / 16);
}

/// `lengths`: valid keys of the first sequences.
void expect_right_emulated(Device& device, const DeviceInfo& info, const Problem& problem,
                           const Config& config, const std::vector<std::int64_t>& lengths) {
  SCOPED_TRACE(problem.key() + " | " + config.text());
  auto plan = built_in("attention").plan(problem, info, config).value();
  plan.sources[0].options = {"-DGRETA_MATRIX_EMULATED"};
  const auto inputs = test::attention_inputs(problem, 5, lengths);
  const auto run = test::run_plan(device, plan, built_in("attention").tensors(problem), inputs);
  ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
  EXPECT_EQ(run->overrun, "");
  const Verdict verdict = built_in("attention").reference(problem, inputs, 5)->check(run->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

TEST(AttentionCooperative, TheAlgorithmIsRightWithEmulatedMatrices) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  Random random(3);
  for (int done = 0; done < 6;) {
    info.matrix_operations = done % 3 == 2 ? intel_products : nvidia_products;
    const DType in = done % 2 == 0 ? DType::f16 : DType::bf16;
    const Problem problem = random_problem(random, in, {16, 32, 48}, 50);
    const Space space = built_in("attention").space(problem, info);
    if (space.count("matrix") == 0) continue;  // eight lanes have too few registers
    const Config config = space.sample("matrix", random);
    if (products(problem, config) > 8) continue;
    const auto length = problem.dim("kv") - below(random, problem.dim("kv") - problem.dim("q") + 1);
    expect_right_emulated(*device, info, problem, config, {length});
    ++done;
  }
}

struct Tiles {
  int bk, wq, waves, columns, pack, split;
};

Config config_of(const Tiles& t, const DeviceInfo& info) {
  return {"matrix",
          {{"BK", t.bk},
           {"WQ", t.wq},
           {"WAVES", t.waves},
           {"INSTR", t.columns},
           {"QREG", 0},
           {"PACK", t.pack},
           {"SPLIT", t.split},
           {"TOGETHER", 1},
           {"SUBGROUP", static_cast<int>(info.subgroup_size)}}};
}

/// Values of another size have lines of their own in shared memory.
TEST(AttentionCooperative, ValuesMayHaveAnotherSize) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  info.matrix_operations = nvidia_products;
  for (const auto& [dim, v_dim] : {std::pair{48, 16}, {16, 48}}) {
    const Problem problem = attention_problem({1, 4, 2, 20, 60, dim, true, v_dim}, DType::f16);
    expect_right_emulated(*device, info, problem, config_of({16, 16, 2, 16, 1, 2}, info), {55});
  }
}

/// Outputs are written in chunks of BK dimensions. Heads may be smaller, and lanes may have several
/// rows.
TEST(AttentionCooperative, PiecesOfOutputsNeedNotBeFull) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  info.matrix_operations = nvidia_products;
  struct Case {
    int dim, bk, wq, waves, columns;
  };
  for (const auto& [dim, bk, wq, waves, columns] : {Case{16, 64, 16, 4, 8}, {16, 16, 32, 2, 16}}) {
    const Problem problem = attention_problem({1, 2, 1, 37, 70, dim, true}, DType::f16, DType::f16);
    const Config config = config_of({bk, wq, waves, columns, 0, 1}, info);
    expect_right_emulated(*device, info, problem, config, {65});
  }
}

/// Groups of 3 and 5 heads leave rows of a tile without a query; slices are chosen by each
/// sequence's own length, so that some have all of them, some one, some nothing.
TEST(AttentionCooperative, PackedHeadsAndSlicesOfAnyLength) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  info.matrix_operations = nvidia_products;
  const DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;
  struct Case {
    test::AttentionShape shape;  // batch, heads, kv_heads, queries, keys, dim, causal
    DType in, out;
    Tiles tiles;
    std::vector<std::int64_t> lengths;
  };
  for (const Case& c : {
           Case{{4, 5, 1, 1, 90, 16, false}, f16, f16, {16, 16, 1, 8, 1, 1}, {90, 0, 1, 33}},
           Case{{3, 6, 2, 7, 60, 32, true}, bf16, f32, {16, 16, 1, 16, 1, 3}, {60, 2, 17}},
           Case{
               {5, 10, 2, 4, 130, 16, true}, f16, f32, {16, 16, 2, 16, 1, 8}, {130, 0, 3, 64, 127}},
           Case{{2, 2, 2, 20, 100, 32, true}, bf16, bf16, {32, 16, 2, 16, 0, 2}, {100, 19}},
       }) {
    Problem problem = attention_problem(c.shape, c.in, c.out);
    expect_right_emulated(*device, info, problem, config_of(c.tiles, info), c.lengths);
    if (c.shape.causal) problem.attributes.emplace_back("window", "40");
    problem.attributes.emplace_back("sinks", "head");
    problem.attributes.emplace_back("lse", "stored");
    problem.attributes.emplace_back("page_size", "32");
    expect_right_emulated(*device, info, problem, config_of(c.tiles, info), c.lengths);
  }
}

void expect_valid_samples(const std::vector<MatrixOperation>& operations, DType in,
                          const std::string& macro) {
  const DeviceInfo info = test::cooperative_gpu(operations);
  Random random(4);
  for (int done = 0; done < 30; ++done) {
    const Problem problem = random_problem(random, in, {64, 80, 96, 128, 256}, 5000);
    const Space space = built_in("attention").space(problem, info);
    const Config config = space.sample("matrix", random);
    SCOPED_TRACE(problem.key() + " | " + config.text());
    test::expect_valid(info, built_in("attention").plan(problem, info, config).value(), macro);
  }
}

TEST(AttentionCooperative, NvMatricesCompileToValidSpirv) {
  expect_valid_samples(nvidia_products, DType::f16, "GRETA_MATRIX_NV");
}

TEST(AttentionCooperative, KhrMatricesCompileToValidSpirv) {
  expect_valid_samples(intel_products, DType::f16, "GRETA_MATRIX_KHR");
  expect_valid_samples(nvidia_products, DType::bf16, "GRETA_MATRIX_KHR");
}

TEST(AttentionCooperative, IsTheDefaultOfManyRowsWhereTheDeviceHasMatrices) {
  const auto variant = [](std::int64_t queries, DType in,
                          const std::vector<MatrixOperation>& operations,
                          std::int64_t kv_heads = 16) {
    const Problem problem = attention_problem({1, 16, kv_heads, queries, 4096, 128, true}, in, in);
    return built_in("attention").default_config(problem, test::cooperative_gpu(operations)).variant;
  };
  EXPECT_EQ(variant(4096, DType::f16, nvidia_products), "matrix");
  EXPECT_EQ(variant(4096, DType::bf16, intel_products), "matrix");
  EXPECT_EQ(variant(4096, DType::f32, nvidia_products), "vector");
  EXPECT_EQ(variant(4096, DType::f16, {}), "vector");
  EXPECT_EQ(variant(1, DType::f16, nvidia_products), "decode");
  EXPECT_EQ(variant(1, DType::f16, nvidia_products, 4), "decode");
  EXPECT_EQ(variant(1, DType::f16, nvidia_products, 1), "matrix");
  EXPECT_EQ(variant(3, DType::bf16, nvidia_products, 4), "matrix");
  EXPECT_EQ(variant(1, DType::f16, {}, 1), "decode");
}

}  // namespace
}  // namespace greta::test::attention_cooperative_test
