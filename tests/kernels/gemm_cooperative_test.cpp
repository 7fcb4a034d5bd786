// Protects: the variant `matrix` in GLSL. No CPU driver of a stable distribution supports
// cooperative matrices, so the algorithm runs with emulated ones. With real ones it is compiled to
// valid SPIR-V.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "kernels/model/random.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/cooperative_gpu.hpp"
#include "tests/kernels/gemm_cpu.hpp"

namespace greta::test::gemm_cooperative_test {
namespace {

using test::gemm_problem;
using test::intel_products;
using test::nvidia_products;

template <typename T>
T pick(const std::vector<T>& list, std::mt19937_64& random) {
  return list[uniform_below(random, list.size())];
}

/// Returns a problem with 16-bit inputs and extents up to `most`, half of them multiples of 8.
Problem random_problem(std::mt19937_64& random, const std::vector<DType>& inputs,
                       std::uint64_t most) {
  const auto extent = [&] {
    const auto size = static_cast<std::int64_t>(1 + uniform_below(random, most));
    return uniform_below(random, 2) == 0 ? size : (size + 7) / 8 * 8;
  };
  std::vector<std::pair<std::string, std::string>> attributes;
  const auto add = [&](const char* name, const std::string& value, const char* fallback) {
    if (value != fallback) attributes.emplace_back(name, value);
  };
  const std::string layout = pick<std::string>({"nn", "nt", "tn"}, random);
  const bool gated = layout == "nt" && uniform_below(random, 2) == 0;  // lines of B alternate
  const std::vector<std::string> plain{"none", "bias", "residual,silu"},
      gates{"swiglu", "bias,geglu"};
  add("layout", layout, "nn");
  add("epilogue", pick(gated ? gates : plain, random), "none");
  if (!gated) add("beta", pick<std::string>({"0", "0", "2"}, random), "0");
  const DType in = pick(inputs, random), out = pick<DType>({in, DType::f32}, random);
  const std::int64_t m = 4 + extent();
  return gemm_problem(m, extent(), extent(), in, out, attributes);
}

TEST(GemmCooperative, TheAlgorithmIsRightWithEmulatedMatrices) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  std::mt19937_64 random(3);
  for (int done = 0; done < 12;) {
    info.matrix_operations = done % 3 == 2 ? intel_products : nvidia_products;
    const Problem problem = random_problem(random, {DType::f16, DType::bf16}, 130);
    const Space space = built_in("gemm").space(problem, info);
    if (space.count("matrix") == 0) continue;  // too few rows
    const Config config = test::sample_of_few_products(space, problem.dim("k"), random);
    test::expect_right_emulated(*device, info, problem, config,
                                test::random_inputs(built_in("gemm").tensors(problem), 5));
    ++done;
  }
}

TEST(GemmCooperative, BatchesAndGroupsOfRowsAreRightWithEmulatedMatrices) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  info.matrix_operations = nvidia_products;
  std::mt19937_64 random(4);
  for (const char* key :
       {"gemm dtype=f16 out=f32 layout=nt epilogue=bias,residual b_batch_stride=\"5000\" m=40 n=72 "
        "k=64 batch=3",
        "gemm dtype=bf16 out=bf16 shared=b m=33 n=50 k=40 batch=2",
        "gemm dtype=f16 out=f16 layout=nt epilogue=bias,swiglu packing=panels m=40 n=80 k=104",
        "gemm dtype=bf16 out=f32 layout=nt packing=panels m=70 n=48 k=72 batch=2",
        "grouped_gemm dtype=bf16 out=f32 groups=5 m=90 n=68 k=48",
        "grouped_gemm dtype=f16 out=f16 layout=nn routing=skewed groups=7 m=60 n=48 k=40",
        "grouped_gemm dtype=f16 out=f32 form=masked groups=3 m=40 n=33 k=64",
        "grouped_gemm dtype=f16 out=f16 epilogue=swiglu groups=3 m=40 n=36 k=48"}) {
    const Problem problem = catalog().read(key).value();
    const Operation& operation = built_in(problem.op);
    const Space space = operation.space(problem, info);
    for (const auto style : {InputStyle::plain, InputStyle::adversarial}) {
      const Config config = test::sample_of_few_products(space, problem.dim("k"), random);
      test::expect_right_emulated(*device, info, problem, config,
                                  operation.inputs(problem, 5, style));
    }
  }
}

void expect_valid_samples(const std::vector<MatrixOperation>& operations,
                          const std::vector<DType>& inputs, const std::string& macro) {
  const DeviceInfo info = test::cooperative_gpu(operations);
  std::mt19937_64 random(4);
  for (int done = 0; done < 50;) {
    const Problem problem = random_problem(random, inputs, 5000);
    const Space space = built_in("gemm").space(problem, info);
    if (space.count("matrix") == 0) continue;
    const Config config = space.sample("matrix", random);
    SCOPED_TRACE(problem.key() + " | " + config.text());
    test::expect_valid(info, built_in("gemm").plan(problem, info, config).value(), macro);
    ++done;
  }
}

TEST(GemmCooperative, NvMatricesCompileToValidSpirv) {
  expect_valid_samples(nvidia_products, {DType::f16}, "GRETA_MATRIX_NV");
}

TEST(GemmCooperative, KhrMatricesCompileToValidSpirv) {
  expect_valid_samples(intel_products, {DType::f16}, "GRETA_MATRIX_KHR");
  expect_valid_samples(nvidia_products, {DType::bf16}, "GRETA_MATRIX_KHR");
}

TEST(GemmCooperative, IsTheDefaultWhereTheDeviceHasMatrices) {
  const DeviceInfo with = test::cooperative_gpu(nvidia_products),
                   without = test::cooperative_gpu({});
  const auto config = [&](std::int64_t extent, DType in) {
    const Problem problem = gemm_problem(extent, extent, extent, in, DType::f32);
    return built_in("gemm").default_config(problem, with);
  };
  for (const DType in : {DType::f16, DType::bf16}) {
    EXPECT_EQ(config(4096, in).variant, "matrix");
    EXPECT_EQ(config(4096, in)["ALIGN"], 0);
    EXPECT_EQ(config(4095, in).variant, "matrix");
    EXPECT_EQ(config(4095, in)["ALIGN"], 1) << "odd lines are copied first";
    EXPECT_EQ(config(40, in).variant, "matrix");
  }
  EXPECT_EQ(config(4096, DType::f32).variant, "tiled") << "there are no f32 products";
  const Problem problem = gemm_problem(4096, 4096, 4096, DType::f16, DType::f16);
  EXPECT_EQ(built_in("gemm").default_config(problem, without).variant, "tiled");
  const Space space = built_in("gemm").space(problem, without);
  EXPECT_EQ(space.count("matrix"), 0U);
}

TEST(GemmCooperative, SubgroupSizesAreRequired) {
  DeviceInfo info = test::cooperative_gpu(nvidia_products);
  info.max_subgroup_size = 64;
  const Problem problem = gemm_problem(512, 512, 512, DType::f16, DType::f16);
  const Space space = built_in("gemm").space(problem, info);
  std::mt19937_64 random(5);
  std::set<int> sizes;
  for (int i = 0; i < 50; ++i) {
    const Config config = space.sample("matrix", random);
    const auto plan = built_in("gemm").plan(problem, info, config).value();
    EXPECT_EQ(plan.sources[0].required_subgroup_size,
              static_cast<std::uint32_t>(config["SUBGROUP"]));
    EXPECT_EQ(plan.sources[0].block[0] % plan.sources[0].required_subgroup_size, 0U);
    sizes.insert(config["SUBGROUP"]);
  }
  EXPECT_EQ(sizes, (std::set<int>{32, 64}));
}

TEST(GemmCooperative, TheTextRefusesBrokenParameters) {
  const Problem problem = gemm_problem(128, 128, 128, DType::f16, DType::f16);
  const DeviceInfo info = test::cooperative_gpu(nvidia_products);
  const auto plan =
      built_in("gemm").plan(problem, info, built_in("gemm").default_config(problem, info)).value();
  const auto compile_with = [&](const std::string& from, const std::string& to) {
    KernelSource source = plan.sources[0];
    source.options = {"-DGRETA_MATRIX_NV"};
    const auto at = source.text.find("#define " + from);
    if (at == std::string::npos) return "no " + from;
    source.text.replace(at, source.text.find('\n', at) - at, "#define " + to);
    const auto spirv = vulkan::compile_glsl(source);
    return spirv ? "compiled" : spirv.failure().log;
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos ? std::string() : text;
  };
  EXPECT_EQ(contains(compile_with("PAD ", "PADDING 0"), "must be defined"), "");
  EXPECT_EQ(contains(compile_with("WM ", "WM 24"), "products divide"), "");
  EXPECT_EQ(contains(compile_with("STAGES ", "STAGES 3"), "STAGES is 1 or 2"), "");
  EXPECT_EQ(contains(compile_with("INSTR_K ", "INSTR_Q 16"), "must be defined"), "");
  KernelSource bare = plan.sources[0];
  EXPECT_EQ(contains(vulkan::compile_glsl(bare).failure().log, "GRETA_MATRIX_KHR or"), "");
}

}  // namespace
}  // namespace greta::test::gemm_cooperative_test
