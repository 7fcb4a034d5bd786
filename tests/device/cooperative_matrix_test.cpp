#include "runtime/device/vulkan/cooperative_matrix.hpp"

#include <gtest/gtest.h>

#include "runtime/device/vulkan/glsl_compiler.hpp"

namespace greta::vulkan {

namespace {

using Operations = std::vector<MatrixOperation>;

VkCooperativeMatrixPropertiesNV nv(std::uint32_t n, VkComponentTypeNV in, VkComponentTypeNV out,
                                   VkScopeNV scope = VK_SCOPE_SUBGROUP_NV) {
  return {{}, nullptr, 16, n, 16, in, in, out, out, scope};
}

VkCooperativeMatrixPropertiesKHR khr(std::uint32_t n, VkComponentTypeKHR in,
                                     VkComponentTypeKHR out) {
  return {{}, nullptr, 16, n, 16, in, in, out, out, VK_FALSE, VK_SCOPE_SUBGROUP_KHR};
}

// What an H200 lists, among other things.
TEST(CooperativeMatrixTest, ProductsOfASubgroupWithF32SumsAreUsedNv) {
  const auto f16 = VK_COMPONENT_TYPE_FLOAT16_NV, f32 = VK_COMPONENT_TYPE_FLOAT32_NV;
  EXPECT_EQ(usable({nv(16, f16, f16), nv(16, f16, f32), nv(8, f16, f32), nv(8, f16, f32),
                    nv(32, f16, f32, VK_SCOPE_WORKGROUP_NV),
                    nv(16, VK_COMPONENT_TYPE_SINT8_NV, VK_COMPONENT_TYPE_SINT32_NV)}),
            (Operations{{"f16", "f32", 16, 16, 16}, {"f16", "f32", 16, 8, 16}}));
}

TEST(CooperativeMatrixTest, ProductsOfASubgroupWithF32SumsAreUsedKhr) {
  const auto f16 = VK_COMPONENT_TYPE_FLOAT16_KHR, f32 = VK_COMPONENT_TYPE_FLOAT32_KHR;
  const auto bf16 = VK_COMPONENT_TYPE_BFLOAT16_KHR;
  auto saturating = khr(32, f16, f32), device_wide = khr(64, f16, f32);
  saturating.saturatingAccumulation = VK_TRUE;
  device_wide.scope = static_cast<VkScopeKHR>(1);
  auto mixed = khr(128, f16, f32);
  mixed.ResultType = f16;
  const std::vector listed{khr(16, f16, f16),
                           khr(16, f16, f32),
                           khr(16, bf16, f32),
                           khr(16, bf16, bf16),
                           saturating,
                           device_wide,
                           mixed};
  const MatrixOperation of_f16{"f16", "f32", 16, 16, 16}, of_bf16{"bf16", "f32", 16, 16, 16};
  EXPECT_EQ(usable(listed, false), Operations{of_f16});
  EXPECT_EQ(usable(listed, true), (Operations{of_f16, of_bf16}));
}

TEST(GlslCompiler, KnowsExtensions) {
  EXPECT_TRUE(glsl_knows("GL_NV_cooperative_matrix")) << "every release since 2019 does";
  EXPECT_FALSE(glsl_knows("GL_GRETA_nonexistent"));
}

}  // namespace

}  // namespace greta::vulkan
