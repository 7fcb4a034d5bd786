// Protects: the selection of cooperative matrix operations, that only devices opened for it emulate
// them, and the translation of NV matrices to KHR matrices in SPIR-V.

#include "runtime/device/vulkan/cooperative_matrix.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/device/backend.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "tests/layers.hpp"

namespace greta::test::cooperative_matrix_test {

using namespace device::vulkan;

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

/// Tuning, benchmarks, look-up and models open devices without the option.
TEST(CooperativeMatrixTest, ACpuHasEmulatedOnesOnlyWhereTheyAreAskedFor) {
  const auto plain = open_device("vulkan:0", {}).value();
  if (!plain->info().is_cpu() || !plain->info().matrix_operations.empty())
    GTEST_SKIP() << plain->info().name << " is no CPU without cooperative matrices";
  OpenOptions options;
  options.emulated_matrices = true;
  const auto emulating = open_device("vulkan:0", options).value();
  EXPECT_EQ(emulating->info().matrix_operations, emulated_operations());
  KernelSource source;
  source.name = source.entry = "main";
  source.language = Language::glsl;
  source.block = {1, 1, 1};
  source.text =
      "#version 460\n#if !defined(GRETA_MATRIX_EMULATED)\n#error none\n#endif\nvoid main() {}\n";
  EXPECT_TRUE(emulating->compile(source));
  EXPECT_FALSE(plain->compile(source));
  EXPECT_EQ(open_device("vulkan:0", {}).value()->info().matrix_operations, Operations{});
}

// Among other operations, an H200 lists these.
TEST(CooperativeMatrixTest, ProductsOfASubgroupWithF32SumsAreUsedNv) {
  const auto f16 = VK_COMPONENT_TYPE_FLOAT16_NV, f32 = VK_COMPONENT_TYPE_FLOAT32_NV;
  EXPECT_EQ(
      usable({nv(16, f16, f16), nv(16, f16, f32), nv(8, f16, f32), nv(8, f16, f32),
              nv(32, f16, f32, VK_SCOPE_WORKGROUP_NV),
              nv(16, VK_COMPONENT_TYPE_SINT8_NV, VK_COMPONENT_TYPE_SINT32_NV)}),
      (Operations{{DType::f16, DType::f32, 16, 16, 16}, {DType::f16, DType::f32, 16, 8, 16}}));
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
  const MatrixOperation of_f16{DType::f16, DType::f32, 16, 16, 16},
      of_bf16{DType::bf16, DType::f32, 16, 16, 16};
  EXPECT_EQ(usable(listed, false), Operations{of_f16});
  EXPECT_EQ(usable(listed, true), (Operations{of_f16, of_bf16}));
}

// Returns a matrix product whose specialisation constants begin at this number.
std::string product_text(int first_role) {
  return fmt::format(R"(#version 460
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(constant_id = {}) const uint ROWS_OF_A = 16;
layout(constant_id = {}) const uint COLUMNS_OF_B = 16;
layout(local_size_x = 32) in;
shared uvec4 memory[128];
void main() {{
  fcoopmatNV<16, gl_ScopeSubgroup, ROWS_OF_A, 16> a;
  fcoopmatNV<16, gl_ScopeSubgroup, 16, COLUMNS_OF_B> b;
  fcoopmatNV<32, gl_ScopeSubgroup, 16, 16> c = fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>(0.0);
  coopMatLoadNV(a, memory, 0, 2, false);
  coopMatLoadNV(b, memory, 32, 2, true);
  coopMatStoreNV(coopMatMulAddNV(a, b, c), memory, 64, 4, false);
}}
)",
                     first_role, first_role + 1);
}

Result<Spirv> compiled(const std::string& text, std::vector<std::string> options) {
  KernelSource source;
  source.name = "product";
  source.text = text;
  source.language = Language::glsl;
  source.entry = "main";
  source.options = std::move(options);
  return compile_glsl(source);
}

// Returns the operands of each instruction with this opcode.
std::vector<Spirv> operands(const Spirv& spirv, std::uint32_t op) {
  std::vector<Spirv> found;
  for (std::size_t at = 5; at < spirv.size(); at += spirv[at] >> 16U) {
    const auto from = spirv.begin() + static_cast<std::ptrdiff_t>(at);
    if ((spirv[at] & 0xFFFFU) == op) found.emplace_back(from + 1, from + (spirv[at] >> 16U));
  }
  return found;
}

std::multiset<std::uint32_t> capabilities(const Spirv& spirv) {
  std::multiset<std::uint32_t> list;
  for (const Spirv& w : operands(spirv, 17)) list.insert(w[0]);
  return list;
}

std::multiset<std::string> extensions(const Spirv& spirv) {
  std::multiset<std::string> list;
  for (const Spirv& w : operands(spirv, 10)) {
    list.insert(reinterpret_cast<const char*>(w.data()));  // ends with a zero
  }
  return list;
}

std::map<std::uint32_t, std::uint32_t> constants(const Spirv& spirv) {
  std::map<std::uint32_t, std::uint32_t> values;
  for (const Spirv& w : operands(spirv, 43)) values[w[1]] = w[2];  // OpConstant
  return values;
}

/// SPIRV-Tools of Debian 12 can't validate these modules, so the test compares their words with the
/// specification.
TEST(KhrMatrices, AreMadeOfNvMatricesByTheirRoles) {
  const auto spirv = compiled(product_text(1), {"-DGRETA_MATRIX_KHR"});
  ASSERT_TRUE(spirv) << spirv.failure().log;
  for (std::uint32_t nv = 5358; nv <= 5362; ++nv) EXPECT_TRUE(operands(*spirv, nv).empty()) << nv;
  EXPECT_TRUE(operands(*spirv, 50).empty()) << "specialisation constants";
  EXPECT_EQ(capabilities(*spirv).count(6022), 1U) << "CooperativeMatrixKHR";
  EXPECT_EQ(capabilities(*spirv).count(5357), 0U) << "CooperativeMatrixNV";
  EXPECT_EQ(capabilities(*spirv).count(5116), 0U) << "BFloat16TypeKHR";
  EXPECT_EQ(extensions(*spirv), std::multiset<std::string>{"SPV_KHR_cooperative_matrix"});

  auto values = constants(*spirv);
  std::map<std::uint32_t, std::uint32_t> use;  // per type
  for (const Spirv& w : operands(*spirv, 4456)) {
    ASSERT_EQ(w.size(), 6U) << "id, element, scope, rows, columns, use";
    EXPECT_EQ(values[w[3]], 16U);
    EXPECT_EQ(values[w[4]], 16U);
    use[w[0]] = values[w[5]];
  }
  EXPECT_EQ(use.size(), 3U);

  const auto loads = operands(*spirv, 4457);  // type, id, pointer, layout, stride, access, scope
  ASSERT_EQ(loads.size(), 2U);
  EXPECT_EQ(use[loads[0][0]], 0U) << "a";
  EXPECT_EQ(values[loads[0][3]], 0U) << "rows in lines";
  EXPECT_EQ(use[loads[1][0]], 1U) << "b";
  EXPECT_EQ(values[loads[1][3]], 1U) << "columns in lines";
  EXPECT_EQ(values[loads[1][4]], 2U) << "stride";
  const auto stores = operands(*spirv, 4458);  // pointer, object, layout, stride, access, scope
  ASSERT_EQ(stores.size(), 1U);
  EXPECT_EQ(values[stores[0][2]], 0U);
  EXPECT_EQ(values[stores[0][3]], 4U);
  const auto products = operands(*spirv, 4459);
  ASSERT_EQ(products.size(), 1U);
  EXPECT_EQ(use[products[0][0]], 2U) << "sums";
  // Loaded matrices are stored in a variable: the operands are loads of it with the same types.
  std::map<std::uint32_t, std::uint32_t> type_of;
  for (const Spirv& w : operands(*spirv, 61)) type_of[w[1]] = w[0];  // OpLoad
  for (const Spirv& w : loads) type_of[w[1]] = w[0];
  EXPECT_EQ(use[type_of[products[0][2]]], 0U) << "a";
  EXPECT_EQ(use[type_of[products[0][3]]], 1U) << "b";
}

TEST(KhrMatrices, Bf16IsATypeOfItsOwn) {
  const auto spirv = compiled(product_text(3), {"-DGRETA_MATRIX_KHR"});
  ASSERT_TRUE(spirv) << spirv.failure().log;
  std::uint32_t bf16 = 0;
  for (const Spirv& w : operands(*spirv, 22)) {  // OpTypeFloat
    if (w.size() == 3) bf16 = w[0];
  }
  ASSERT_NE(bf16, 0U);
  EXPECT_LT(bf16, (*spirv)[3]) << "the bound";
  EXPECT_EQ(capabilities(*spirv).count(5116), 1U) << "BFloat16TypeKHR";
  EXPECT_EQ(capabilities(*spirv).count(5118), 1U) << "BFloat16CooperativeMatrixKHR";
  EXPECT_EQ(extensions(*spirv),
            (std::multiset<std::string>{"SPV_KHR_bfloat16", "SPV_KHR_cooperative_matrix"}));
  int of_bf16 = 0;
  for (const Spirv& w : operands(*spirv, 4456)) of_bf16 += w[1] == bf16 ? 1 : 0;
  EXPECT_EQ(of_bf16, 2);
}

TEST(KhrMatrices, OnlyWhereTheDeviceHasThem) {
  const auto spirv = compiled(product_text(1), {"-DGRETA_MATRIX_NV"});
  ASSERT_TRUE(spirv) << spirv.failure().log;
  EXPECT_EQ(operands(*spirv, 5358).size(), 3U);
  EXPECT_TRUE(operands(*spirv, 4456).empty());
}

TEST(KhrMatrices, AModuleWithoutThemStaysAsItIs) {
  const std::string text =
      "#version 460\nlayout(local_size_x = 32) in;\nshared uint x;\nvoid main() { x = 1; }\n";
  EXPECT_EQ(compiled(text, {"-DGRETA_MATRIX_KHR"}).value(), compiled(text, {}).value());
}

TEST(KhrMatrices, AMatrixWithoutARoleIsRefused) {
  std::string without = product_text(1);
  for (std::size_t at; (at = without.find("COLUMNS_OF_B>")) != std::string::npos;) {
    without.replace(at, 12, "16");
  }
  for (const std::string& text : {without, product_text(7)}) {
    const auto spirv = compiled(text, {"-DGRETA_MATRIX_KHR"});
    ASSERT_FALSE(spirv);
    EXPECT_EQ(spirv.failure().status, Status::compile);
    EXPECT_NE(spirv.failure().message.find("one role"), std::string::npos);
  }
}

}  // namespace

}  // namespace greta::test::cooperative_matrix_test
