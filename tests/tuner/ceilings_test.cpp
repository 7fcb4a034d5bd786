// Protects: ceilings are measured in every device's kernel language, including those of matrix
// cores. Their kernels contain the intended instructions, rooflines use the right ceilings, and an
// invalid stored value counts as not measured.

#include "tuner/measure/ceilings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/device/backend.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "tests/layers.hpp"
#include "tuner/compile/target_compiler.hpp"
#include "tuner/measure/ceiling_kernels.hpp"

namespace greta::test::ceilings_test {
namespace {

class CeilingsOf : public ::testing::TestWithParam<const char*> {};

TEST_P(CeilingsOf, EveryKindIsMeasured) {
  const auto device = open_device(GetParam(), {}).value();
  const auto ceilings = measure_ceilings(*device, ceiling_kinds(device->info())).value();
  const auto kinds = ceiling_kinds(device->info());
  ASSERT_EQ(ceilings.size(), kinds.size());
  for (const auto& kind : kinds) EXPECT_GT(ceiling(ceilings, kind), 1e-3) << kind;
}

std::string name_of(const ::testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ':' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Devices, CeilingsOf,
                         ::testing::Values("auto", "hip-host:0", "hip-host:1", "hip-host:2",
                                           "hip-host:3", "hip-host:4"),
                         name_of);

class CeilingKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(CeilingKernels, CompileWithoutSpillsForGpusThatAreNotHere) {
  const auto target = create_hip_target(GetParam(), {}).value();
  const DeviceInfo& info = target->target();
  const auto statistics = [&](const KernelSource& source) {
    const auto compiled = target->compile(source);
    EXPECT_TRUE(compiled) << compiled.failure().message << compiled.failure().log;
    return compiled ? compiled->statistics : KernelStatistics{};
  };
  for (const auto& source : {fma_kernel(info), copy_kernel(info), read_kernel(info)}) {
    const auto figures = statistics(source);
    EXPECT_GT(figures.registers, 0U);
    EXPECT_FALSE(figures.spills());
  }
  EXPECT_FALSE(info.matrix_operations.empty());
  for (const auto& operation : info.matrix_operations) {
    const auto figures = statistics(matrix_kernel(info, operation));
    EXPECT_GE(figures.matrix_instructions, matrix_chains) << to_string(operation.input);
    EXPECT_FALSE(figures.spills()) << to_string(operation.input);
  }
  for (const MatrixNumbers numbers : all_matrix_numbers) {
    if (!has_matrix_kernel(info, numbers)) continue;
    const auto figures = statistics(matrix_kernel(info, numbers).source);
    EXPECT_GE(figures.matrix_instructions, matrix_chains) << to_string(numbers);
    EXPECT_FALSE(figures.spills()) << to_string(numbers);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CeilingKernels,
                         ::testing::Values("gfx942", "gfx950", "gfx1100", "gfx1201"), name_of);
#ifdef GRETA_TEST_NVRTC
INSTANTIATE_TEST_SUITE_P(Nvidia, CeilingKernels, ::testing::Values("sm_80", "sm_90"), name_of);
#endif

// Compiled like in the Vulkan backend for devices of either extension. Emulated matrices run on any
// device.
TEST(CeilingKernels, CooperativeMatricesOfEitherKindAndEmulated) {
  const auto device = open_device("vulkan:0", {}).value();
  DeviceInfo info = device->info();
  info.matrix_operations = {{DType::f16, DType::f32, 16, 8, 16}};
  const auto with = [&](const char* define) {
    KernelSource source = matrix_kernel(info, info.matrix_operations[0]);
    source.text.insert(source.text.find('\n') + 1, fmt::format("#define {}\n", define));
    return source;
  };
  const auto nv = vulkan::compile_glsl(with("GRETA_MATRIX_NV"));
  EXPECT_TRUE(nv) << nv.failure().log;
  for (const DType type : {DType::f16, DType::bf16}) {
    info.matrix_operations[0].input = type;
    KernelSource khr = matrix_kernel(info, info.matrix_operations[0]);
    khr.options = {"-DGRETA_MATRIX_KHR"};
    EXPECT_TRUE(vulkan::compile_glsl(khr)) << to_string(type);
  }
  info.matrix_operations[0].input = DType::f16;
  // The kernel writes only if its sum is -12345.678, which this change makes unconditional.
  auto emulated = with("GRETA_MATRIX_EMULATED");
  const std::string never = "if (sum == -12345.678) ";
  ASSERT_NE(emulated.text.find(never), std::string::npos);
  emulated.text.erase(emulated.text.find(never), never.size());
  emulated.text += "vec2 halves(uint word) { return unpackHalf2x16(word); }\n";
  const auto compiled = device->compile(emulated);
  ASSERT_TRUE(compiled) << compiled.failure().log;
  const auto sink = device->allocate(4096).value();
  const auto stream = device->create_stream().value();
  std::array<std::byte, 16> arguments{};
  const std::uint64_t address = sink->address();
  const std::uint32_t values[] = {64, matrix_input(DType::f16)};
  std::memcpy(arguments.data(), &address, sizeof address);
  std::memcpy(arguments.data() + 8, values, sizeof values);
  stream->launch(**compiled, {1, 1, 1}, arguments).value();
  stream->synchronize(std::chrono::seconds(60)).value();
  std::array<float, 256> sums{};
  device->download(*sink, 0, std::as_writable_bytes(std::span(sums))).value();
  const double factor = decode<DType::f16>(values[1] & 0xffff),
               want = matrix_chains * 64 * factor * factor;
  for (const float sum : sums) EXPECT_NEAR(sum, want, 0.01 * want);
}

TEST(Roofline, OfHalfPrecisionIsThatOfMatrixCores) {
  const std::vector<Ceiling> ceilings{{"copy_gbps", 1000, 1, "", ""},
                                      {"fma_f32_gflops", 10'000, 1, "", ""},
                                      {"matrix_f16_gflops", 100'000, 1, "", ""},
                                      {"matrix_bf16_gflops", 0, 1, "", ""}};
  EXPECT_EQ(arithmetic_gflops(DType::f32, {}, ceilings), 10'000);
  EXPECT_EQ(arithmetic_gflops(DType::f16, {}, ceilings), 100'000);
  EXPECT_EQ(arithmetic_gflops(DType::bf16, {}, ceilings), 10'000);  // it could not be measured
  const Work heavy{1e12, 1e6};
  EXPECT_DOUBLE_EQ(roofline_us(DType::f32, heavy, ceilings), 1e5);
  EXPECT_DOUBLE_EQ(roofline_us(DType::f16, heavy, ceilings), 1e4);
  const Work wide{1e6, 1e9};
  EXPECT_DOUBLE_EQ(roofline_us(DType::f16, wide, ceilings), 1e3);
  EXPECT_EQ(roofline_us(DType::f16, heavy, {}), 0);
}

// The type of a scaled product's outputs says nothing of its arithmetic.
TEST(Roofline, OfMatrixNumbersIsTheirsWhereMatrixCoresHaveThem) {
  std::vector<Ceiling> ceilings{{"copy_gbps", 1000, 1, "", ""},
                                {"fma_f32_gflops", 10'000, 1, "", ""},
                                {"matrix_f16_gflops", 100'000, 1, "", ""}};
  const Work fp8{1e12, 1e6, MatrixNumbers::fp8};
  EXPECT_DOUBLE_EQ(roofline_us(DType::f32, fp8, ceilings), 1e4);  // by f16
  ceilings.push_back({"matrix_fp8_gflops", 200'000, 1, "", ""});
  for (const DType output : {DType::f32, DType::bf16}) {
    EXPECT_DOUBLE_EQ(roofline_us(output, fp8, ceilings), 5e3);
    EXPECT_DOUBLE_EQ(roofline_us(output, {1e12, 1e6, MatrixNumbers::int8}, ceilings), 1e4);
  }
  const Work tf32x3{1e12, 1e6, MatrixNumbers::tf32x3};
  EXPECT_DOUBLE_EQ(roofline_us(DType::f32, tf32x3, ceilings), 1e5);  // by FMAs: not measured
  ceilings.push_back({"matrix_tf32x3_gflops", 50'000, 1, "", ""});
  EXPECT_DOUBLE_EQ(roofline_us(DType::f32, tf32x3, ceilings), 2e4);
}

TEST(Ceilings, WhatNoDeviceHasWasNotMeasured) {
  DeviceInfo device;
  device.driver = "1.2";
  device.matrix_operations = {{DType::f16, DType::f32, 16, 16, 16}};
  std::vector<Ceiling> ceilings{{"copy_gbps", 1000, 1, "1.2", ""},
                                {"fma_f32_gflops", 10'000, 1, "1.2", ""},
                                {"matrix_f16_gflops", 100'000, 1, "1.2", ""}};
  EXPECT_TRUE(missing_kinds(ceilings, device).empty());
  const Work work{1e12, 1e9};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
    for (auto& one : ceilings) {
      const double as_it_was = std::exchange(one.value, value);
      EXPECT_EQ(missing_kinds(ceilings, device), std::vector{one.kind}) << value;
      EXPECT_EQ(ceiling(ceilings, one.kind), 0) << one.kind << " " << value;
      one.value = as_it_was;
    }
    auto without_copy = ceilings;
    without_copy[0].value = value;
    EXPECT_EQ(roofline_us(DType::f16, work, without_copy), 0) << value;
    auto without_matrix = ceilings;
    without_matrix[2].value = value;
    EXPECT_DOUBLE_EQ(roofline_us(DType::f16, work, without_matrix), 1e5) << value;
  }
  ceilings[2].driver = "1.1";
  EXPECT_FALSE(missing_kinds(ceilings, device).empty());
}

}  // namespace
}  // namespace greta::test::ceilings_test
