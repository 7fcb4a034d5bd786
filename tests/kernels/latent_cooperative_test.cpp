// Protects: the variant `matrix` of latent_attention and tree_attention in GLSL. No CPU driver of a
// stable distribution supports cooperative matrices, so the algorithm runs with emulated ones. With
// real ones it is compiled to valid SPIR-V.

#include <gtest/gtest.h>

#include <random>

#include "tests/catalog.hpp"
#include "tests/kernels/cooperative_gpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::latent_cooperative_test {
namespace {

struct LatentCase {
  const char* key;
  int bk, wq, waves, v_waves, columns, split;
  const std::vector<MatrixOperation>& operations;
};

Config config_of(const LatentCase& c, const DeviceInfo& info) {
  return {"matrix",
          {{"BK", c.bk},
           {"WQ", c.wq},
           {"WAVES", c.waves},
           {"VWAVES", c.v_waves},
           {"INSTR", c.columns},
           {"SPLIT", c.split},
           {"SUBGROUP", static_cast<int>(info.subgroup_size)}}};
}

/// Trees, pages, sequences of any length, slices, lanes with several rows and without one, and
/// subgroups without scores.
TEST(LatentCooperative, TheAlgorithmIsRightWithEmulatedMatrices) {
  const auto device = open_device("vulkan:0", {}).value();
  for (const LatentCase& c : {
           LatentCase{"latent_attention dtype=f16 out=f16 mask=tree lse=stored page_size=\"16\" "
                      "lengths=ragged batch=2 heads=3 q=5 kv=70 latent=32 rope=16",
                      32, 16, 1, 2, 16, 1, nvidia_products},
           {"latent_attention dtype=bf16 out=f32 mask=causal lse=stored lengths=ragged batch=3 "
            "heads=8 q=3 kv=130 latent=32 rope=0",
            32, 16, 2, 2, 16, 2, nvidia_products},
           {"latent_attention dtype=f16 out=f32 batch=1 heads=5 q=1 kv=90 latent=64 rope=16", 32,
            16, 1, 8, 8, 3, nvidia_products},
           {"tree_attention dtype=f16 out=f16 lengths=ragged batch=2 heads=4 kv_heads=2 q=40 "
            "kv=100 dim=32",
            16, 32, 2, 2, 8, 2, nvidia_products},
           {"tree_attention dtype=bf16 out=bf16 lse=stored batch=1 heads=2 kv_heads=1 q=9 kv=60 "
            "dim=16",
            16, 16, 1, 1, 16, 1, intel_products},
       }) {
    const Problem problem = catalog().read(c.key).value();
    DeviceInfo info = device->info();
    info.matrix_operations = c.operations;
    const Config config = config_of(c, info);
    SCOPED_TRACE(problem.key() + " | " + config.text());
    const Operation& operation = built_in(problem.op.c_str());
    ASSERT_TRUE(operation.space(problem, info).valid(config));
    auto plan = operation.plan(problem, info, config).value();
    plan.sources[0].options = {"-DGRETA_MATRIX_EMULATED"};
    const auto inputs = operation.inputs(problem, 5);
    const auto run = run_plan(*device, plan, operation.tensors(problem), inputs);
    ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
    EXPECT_EQ(run->overrun, "");
    const Verdict verdict = operation.reference(problem, inputs, 5)->check(run->outputs);
    EXPECT_TRUE(verdict.passed) << verdict.detail;
  }
}

void expect_valid_latent(const std::vector<MatrixOperation>& operations, const char* type,
                         const std::string& macro) {
  const DeviceInfo info = cooperative_gpu(operations);
  std::mt19937_64 random(4);
  for (const char* rest :
       {"latent_attention mask=tree page_size=\"64\" batch=4 heads=16 q=9 kv=3000",
        "latent_attention mask=causal lse=stored batch=1 heads=128 q=2 kv=5000",
        "tree_attention batch=2 heads=32 kv_heads=8 q=26 kv=4096 dim=128"}) {
    std::string key = rest;
    key.insert(key.find(' '), std::string(" dtype=") + type + " out=" + type);
    if (key.starts_with("latent")) key += " latent=512 rope=64";
    const Problem problem = catalog().read(key).value();
    const Operation& operation = built_in(problem.op.c_str());
    const Space space = operation.space(problem, info);
    for (int done = 0; done < 3; ++done) {
      const Config config =
          done == 0 ? operation.default_config(problem, info) : space.sample("matrix", random);
      EXPECT_EQ(config.variant, "matrix");
      SCOPED_TRACE(key + " | " + config.text());
      expect_valid(info, operation.plan(problem, info, config).value(), macro);
    }
  }
}

TEST(LatentCooperative, MatricesCompileToValidSpirv) {
  expect_valid_latent(nvidia_products, "f16", "GRETA_MATRIX_NV");
  expect_valid_latent(intel_products, "f16", "GRETA_MATRIX_KHR");
  expect_valid_latent(nvidia_products, "bf16", "GRETA_MATRIX_KHR");
}

}  // namespace
}  // namespace greta::test::latent_cooperative_test
