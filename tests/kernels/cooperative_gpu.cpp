#include "tests/kernels/cooperative_gpu.hpp"

#include <gtest/gtest.h>

#include <spirv-tools/libspirv.hpp>

#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "runtime/device/vulkan/spirv_info.hpp"
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

}  // namespace greta::test
