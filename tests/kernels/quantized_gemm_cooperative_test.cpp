// Protects: the variant `matrix` of products with quantised weights in GLSL. No CPU driver of a
// stable distribution supports cooperative matrices, so the algorithm runs with emulated ones. With
// real ones it is compiled to valid SPIR-V.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/cooperative_gpu.hpp"

namespace greta::test::quantized_gemm_cooperative_test {
namespace {

using kernels::InputStyle;
using test::intel_products;
using test::nvidia_products;

/// Every format with edges along m, n and k, each type, epilogue and packing, and rounded weights.
constexpr const char* problems[] = {
    "quantized_gemm dtype=f16 out=f32 m=40 n=72 k=384",
    "quantized_gemm dtype=bf16 out=bf16 epilogue=bias m=33 n=50 k=128",
    "quantized_gemm dtype=f16 out=f16 math=rounded_weights m=70 n=33 k=128",
    "quantized_gemm dtype=bf16 out=f32 weights=int8 math=rounded_weights m=40 n=72 k=256",
    "quantized_gemm dtype=f16 out=f16 group=\"32\" zeros=groups epilogue=residual m=20 n=68 k=96",
    "quantized_gemm dtype=bf16 out=f32 group=\"64\" zeros=groups weights=int8 m=35 n=40 k=320",
    "quantized_gemm dtype=f16 out=f32 group=\"64\" zeros=groups weights=int8 m=35 n=40 k=192",
    "quantized_gemm dtype=f16 out=f32 weights=int8 epilogue=swiglu m=35 n=37 k=128",
    "quantized_gemm dtype=f16 out=f32 weights=q4_0 m=20 n=36 k=96",
    "quantized_gemm dtype=bf16 out=f32 weights=q4_0 m=20 n=36 k=224",
    "quantized_gemm dtype=f16 out=f32 weights=q8_0 epilogue=residual m=20 n=35 k=160",
    "quantized_gemm dtype=bf16 out=f32 weights=q8_0 m=20 n=36 k=160",
    "quantized_gemm dtype=f16 out=f32 weights=q4_k m=20 n=36 k=256",
    "quantized_gemm dtype=bf16 out=f32 weights=q4_k epilogue=bias m=20 n=36 k=256",
    "quantized_gemm dtype=f16 out=f32 weights=q4_k math=rounded_weights m=20 n=36 k=256",
    "quantized_gemm dtype=f16 out=f32 weights=q6_k m=20 n=36 k=512",
    "quantized_gemm dtype=bf16 out=f32 weights=q6_k epilogue=swiglu m=20 n=30 k=256",
    "quantized_gemm dtype=bf16 out=f32 weights=mxfp4 m=40 n=36 k=416",
    "quantized_gemm dtype=f16 out=f32 packing=awq zeros=groups m=20 n=40 k=256",
    "quantized_gemm dtype=bf16 out=f32 packing=gptq group=\"32\" zeros=groups m=20 n=40 k=96",
    "quantized_gemm dtype=f16 out=f32 packing=gptq_v2 weights=int8 epilogue=bias m=20 n=40 k=128",
    "quantized_gemm dtype=f16 out=f32 packing=panels m=40 n=48 k=384",
    "quantized_gemm dtype=bf16 out=f32 packing=panels weights=int8 zeros=groups m=20 n=80 k=128",
    "quantized_gemm dtype=bf16 out=f32 packing=panels weights=mxfp4 epilogue=swiglu m=40 n=32 k=96",
    "quantized_grouped_gemm dtype=f16 out=f32 groups=5 m=90 n=68 k=128",
    "quantized_grouped_gemm dtype=bf16 out=f32 weights=q8_0 form=masked groups=3 m=40 n=33 k=96",
    "quantized_grouped_gemm dtype=f16 out=f16 weights=q4_k epilogue=geglu groups=3 m=9 n=36 k=256"};

TEST(QuantizedGemmCooperative, TheAlgorithmIsRightWithEmulatedMatrices) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  std::mt19937_64 random(6);
  int done = 0;
  for (const char* key : problems) {
    info.matrix_operations = done % 3 == 2 ? intel_products : nvidia_products;
    const Problem problem = catalog().read(key).value();
    const Operation& operation = built_in(problem.op);
    const Space space = operation.space(problem, info);
    for (const auto style : {InputStyle::plain, InputStyle::adversarial}) {
      const Config config = test::sample_of_few_products(space, problem.dim("k"), random);
      const auto seed = static_cast<std::uint64_t>(++done);
      test::expect_right_emulated(*device, info, problem, config,
                                  operation.inputs(problem, seed, style));
    }
  }
}

/// A weight of one number times an infinite element of A is infinite, and not a sum of infinities
/// of both signs: in one of eight adversarial inputs.
TEST(QuantizedGemmCooperative, InfiniteElementsAreRightWithEmulatedMatrices) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  info.matrix_operations = nvidia_products;
  for (const char* key : {"quantized_gemm dtype=f16 out=f32 zeros=groups m=16 n=32 k=128",
                          "quantized_gemm dtype=bf16 out=f32 weights=q8_0 m=16 n=32 k=96"}) {
    const Problem problem = catalog().read(key).value();
    const Operation& operation = built_in(problem.op);
    const Config config = operation.default_config(problem, info);
    ASSERT_EQ(config.variant, "matrix");
    auto inputs = operation.inputs(problem, 3, InputStyle::plain);
    for (const std::size_t at : {std::size_t{5}, std::size_t{300}}) {
      store_element(problem.dtype, inputs[0].data.data(), at, at == 5 ? HUGE_VAL : -HUGE_VAL);
    }
    test::expect_right_emulated(*device, info, problem, config, inputs);
  }
}

/// Exact products of f16 need a vendor whose matrix operations take small numbers as they are.
DeviceInfo gpu(const std::vector<MatrixOperation>& operations, std::string vendor = "NVIDIA") {
  DeviceInfo info = test::cooperative_gpu(operations);
  info.vendor = std::move(vendor);
  return info;
}

void expect_valid_samples(const std::vector<MatrixOperation>& operations, bool bf16,
                          const std::string& macro) {
  const DeviceInfo info = gpu(operations);
  std::mt19937_64 random(4);
  for (const char* key : problems) {
    const Problem problem = catalog().read(key).value();
    if (problem.dtype == DType::bf16 && !bf16) continue;
    const Space space = built_in(problem.op).space(problem, info);
    for (int i = 0; i < 3; ++i) {
      const Config config = space.sample("matrix", random);
      SCOPED_TRACE(problem.key() + " | " + config.text());
      test::expect_valid(info, built_in(problem.op).plan(problem, info, config).value(), macro);
    }
  }
}

TEST(QuantizedGemmCooperative, NvMatricesCompileToValidSpirv) {
  expect_valid_samples(nvidia_products, false, "GRETA_MATRIX_NV");
}

TEST(QuantizedGemmCooperative, KhrMatricesCompileToValidSpirv) {
  expect_valid_samples(nvidia_products, true, "GRETA_MATRIX_KHR");
  expect_valid_samples(intel_products, true, "GRETA_MATRIX_KHR");
}

Problem problem_of(std::int64_t m, DType type, const char* weights, bool rounded = false) {
  Problem problem{"quantized_gemm", type, type, {}, {{"m", m}, {"n", 4096}, {"k", 4096}}};
  if (std::string_view(weights) != "int4") problem.attributes.emplace_back("weights", weights);
  if (rounded) problem.attributes.emplace_back("math", "rounded_weights");
  return problem;
}

/// Returns the values of PARTS in valid configurations.
std::set<int> parts_of(const Problem& problem, std::string vendor = "NVIDIA") {
  const DeviceInfo info = gpu(nvidia_products, std::move(vendor));
  const Space space = built_in(problem.op).space(problem, info);
  std::set<int> parts;
  std::mt19937_64 random(2);
  for (int i = 0; i < 100 && space.count("matrix") > 0; ++i) {
    parts.insert(space.sample("matrix", random)["PARTS"]);
  }
  return parts;
}

TEST(QuantizedGemmCooperative, HasAsManyPartsAsWeightsNeed) {
  using Set = std::set<int>;
  for (const char* weights : {"int4", "int8", "q4_0", "q8_0", "q4_k", "q6_k"}) {
    SCOPED_TRACE(weights);
    const bool more = std::set<std::string_view>{"q8_0", "q4_k", "q6_k"}.contains(weights);
    EXPECT_EQ(parts_of(problem_of(512, DType::f16, weights)), (Set{2}));
    EXPECT_EQ(parts_of(problem_of(512, DType::f16, weights, true)), (Set{1, 2}));
    EXPECT_EQ(parts_of(problem_of(512, DType::bf16, weights)), (Set{more ? 3 : 2}));
  }
  EXPECT_EQ(parts_of(problem_of(512, DType::bf16, "mxfp4")), (Set{1}));
  EXPECT_EQ(parts_of(problem_of(512, DType::f16, "mxfp4")), Set{}) << "f16 has not its range";
  EXPECT_EQ(parts_of(problem_of(512, DType::f32, "int4")), Set{}) << "there are no f32 products";
  // Others may take small numbers as 0.
  EXPECT_EQ(parts_of(problem_of(512, DType::f16, "int4"), "AMD"), Set{});
  EXPECT_EQ(parts_of(problem_of(512, DType::f16, "int4", true), "AMD"), (Set{1}));
  EXPECT_EQ(parts_of(problem_of(512, DType::bf16, "int4"), "AMD"), (Set{2}));
}

TEST(QuantizedGemmCooperative, IsTheDefaultForManyRowsWhereTheDeviceHasMatrices) {
  const DeviceInfo with = gpu(nvidia_products), without = gpu({});
  const auto config = [](const Problem& problem, const DeviceInfo& device) {
    return built_in(problem.op).default_config(problem, device);
  };
  for (const DType type : {DType::f16, DType::bf16}) {
    for (const char* weights : {"int4", "q4_k", "q6_k"}) {
      for (const std::int64_t m : {16, 64, 512, 4096}) {
        SCOPED_TRACE(fmt::format("{} {}", weights, m));
        EXPECT_EQ(config(problem_of(m, type, weights), with).variant, "matrix");
      }
      EXPECT_EQ(config(problem_of(1, type, weights), with).variant, "gemv");
    }
  }
  EXPECT_EQ(config(problem_of(512, DType::f16, "int4", true), with)["PARTS"], 1);
  EXPECT_EQ(config(problem_of(512, DType::f32, "int4"), with).variant, "tiled");
  EXPECT_EQ(config(problem_of(512, DType::f16, "int4"), without).variant, "tiled");
}

TEST(QuantizedGemmCooperative, TheTextRefusesBrokenParameters) {
  const Problem problem = problem_of(128, DType::f16, "int4");
  const DeviceInfo info = gpu(nvidia_products);
  const auto plan = built_in(problem.op)
                        .plan(problem, info, built_in(problem.op).default_config(problem, info))
                        .value();
  const auto log_with = [&](const std::string& from, const std::string& to) -> std::string {
    KernelSource source = plan.sources[0];
    source.options = {"-DGRETA_MATRIX_NV"};
    const auto at = source.text.find("#define " + from + " ");
    if (at == std::string::npos) return "no " + from;
    source.text.replace(at, source.text.find('\n', at) - at, "#define " + to);
    const auto spirv = vulkan::compile_glsl(source);
    return spirv ? "compiled" : spirv.failure().log;
  };
  const auto expect_in = [](const std::string& log, const char* part) {
    EXPECT_NE(log.find(part), std::string::npos) << log;
  };
  expect_in(log_with("PARTS", "PARTS 3"), "PARTS must be 1 to 3, with f16 1 or 2");
  expect_in(log_with("DECODE", "DECODES 8"), "must be defined");
  expect_in(log_with("DECODE", "DECODE 16"), "CHUNK_WEIGHTS is 8 or 32");
  expect_in(log_with("BK", "BK 16"), "BK is a multiple of 32");
}

}  // namespace
}  // namespace greta::test::quantized_gemm_cooperative_test
