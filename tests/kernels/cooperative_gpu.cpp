#include "tests/kernels/cooperative_gpu.hpp"

#include <gtest/gtest.h>

#include <spirv-tools/libspirv.hpp>

#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "runtime/device/vulkan/spirv_info.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"

namespace greta::test {
namespace {

void expect_valid_spirv(const vulkan::Spirv& spirv) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  spvtools::ValidatorOptions rules;
  rules.SetScalarBlockLayout(true);
  std::string log;
  tools.SetMessageConsumer([&log](spv_message_level_t, const char*, const spv_position_t&,
                                  const char* message) { log += message; });
  EXPECT_TRUE(tools.Validate(spirv.data(), spirv.size(), rules)) << log;
}

/// Returns whether SPIRV-Tools know a capability of KHR matrices or of bf16 matrices.
bool tools_know(const std::string& capability) {
  std::vector<std::uint32_t> ignored;
  return spvtools::SpirvTools(SPV_ENV_VULKAN_1_3).Assemble("OpCapability " + capability, &ignored);
}

}  // namespace

DeviceInfo cooperative_gpu(std::vector<MatrixOperation> operations) {
  DeviceInfo info;
  info.backend = Api::vulkan;
  info.name = "made up";
  info.kind = DeviceKind::discrete_gpu;
  info.max_workgroup_invocations = 1024;
  info.max_workgroup_size = {1024, 1024, 64};
  info.max_grid = {2147483647, 65535, 65535};
  info.shared_memory_bytes = 48 << 10;
  info.subgroup_size = info.min_subgroup_size = info.max_subgroup_size = 32;
  info.subgroup_size_control = true;
  info.max_argument_bytes = 256;
  info.compute_units = 132;
  info.unit_registers = 65536;
  info.memory_bytes = info.max_allocation_bytes = std::uint64_t{64} << 30;
  info.f16_arithmetic = info.f16_storage = true;
  info.matrix_operations = std::move(operations);
  return info;
}

const std::vector<MatrixOperation> nvidia_products{{DType::f16, DType::f32, 16, 8, 8},
                                                   {DType::f16, DType::f32, 16, 8, 16},
                                                   {DType::f16, DType::f32, 16, 16, 16},
                                                   {DType::bf16, DType::f32, 16, 16, 16}};
const std::vector<MatrixOperation> intel_products{{DType::f16, DType::f32, 8, 16, 16},
                                                  {DType::bf16, DType::f32, 8, 16, 16}};

void expect_valid(const DeviceInfo& info, const LaunchPlan& plan, const std::string& macro) {
  for (KernelSource source : plan.sources) {
    source.options = {"-D" + macro};
    const auto spirv = vulkan::compile_glsl(source);
    ASSERT_TRUE(spirv) << spirv.failure().message << '\n' << spirv.failure().log;
    const bool bf16 = source.text.find("#define IN_BF16 1") != std::string::npos;
    const bool judged = macro == "GRETA_MATRIX_NV" || (tools_know("CooperativeMatrixKHR") &&
                                                       (!bf16 || tools_know("BFloat16TypeKHR")));
    if (judged) expect_valid_spirv(*spirv);
    const vulkan::SpirvInfo needs = vulkan::inspect(*spirv);
    EXPECT_EQ(needs.local_size, source.block);
    EXPECT_LE(needs.shared_memory_bytes, info.shared_memory_bytes);
    EXPECT_LE(needs.push_constant_bytes, source.argument_bytes);
  }
}

Config sample_of_few_products(const Space& space, std::int64_t k, std::mt19937_64& random) {
  for (;;) {
    Config config = space.sample("matrix", random);
    const int parts = config.has("PARTS") ? config["PARTS"] : 1;
    const int of_step =
        config["WM"] / config["INSTR"] * (config["WN"] / 16) * (config["BK"] / 16) * parts;
    const std::int64_t steps = (k + config["BK"] - 1) / config["BK"];
    if (of_step <= 16 && of_step * steps <= 96) return config;
  }
}

void expect_right_emulated(Device& device, const DeviceInfo& info, const Problem& problem,
                           const Config& config, const std::vector<HostTensor>& inputs) {
  SCOPED_TRACE(problem.key() + " | " + config.text());
  const Operation& operation = built_in(problem.op);
  auto plan = operation.plan(problem, info, config).value();
  for (KernelSource& source : plan.sources) source.options = {"-DGRETA_MATRIX_EMULATED"};
  const auto run = run_plan(device, plan, operation.tensors(problem), inputs);
  ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
  EXPECT_EQ(run->overrun, "");
  const Verdict verdict = operation.reference(problem, inputs, 5)->check(run->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

}  // namespace greta::test
