// Protects: the meaning of each format of weights, by blocks whose weights are worked out by hand,
// which formats and groups a problem may have, and that adversarial inputs have special scales.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "kernels/reference/dequantized.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"

namespace greta::test::quantized_gemm_test {
namespace {

HostTensor bytes_of_row(std::vector<int> values) {
  HostTensor tensor{{"B", Role::input, DType::u8, 1, static_cast<std::int64_t>(values.size())}, {}};
  for (const int value : values) tensor.data.push_back(static_cast<std::byte>(value));
  return tensor;
}

void put_f16(HostTensor& tensor, std::size_t at, double value) {
  store_element(DType::f16, tensor.data.data() + at, 0, value);
}

std::vector<float> weights_of(kernels::WeightFormat format, std::int64_t k,
                              const HostTensor& integers, const HostTensor* scales = nullptr,
                              const HostTensor* zeros = nullptr) {
  return kernels::dequantized({.format = format,
                               .rows = 1,
                               .k = k,
                               .group = 32,
                               .integers = &integers,
                               .scales = scales,
                               .zeros = zeros});
}

TEST(WeightFormats, Int4HasTheEvenWeightInTheLowerHalf) {
  std::vector<int> bytes(16, 0x88);
  bytes[0] = 0x3f;
  const HostTensor integers = bytes_of_row(bytes), zeros = bytes_of_row({3});
  HostTensor scales{{"scales", Role::input, DType::f16, 1, 1}, std::vector<std::byte>(2)};
  put_f16(scales, 0, 0.5);
  const auto plain = weights_of(kernels::WeightFormat::int4, 32, integers, &scales);
  EXPECT_EQ(plain[0], 3.5F);   // (15 - 8) / 2
  EXPECT_EQ(plain[1], -2.5F);  // (3 - 8) / 2
  EXPECT_EQ(plain[2], 0);
  const auto shifted = weights_of(kernels::WeightFormat::int4, 32, integers, &scales, &zeros);
  EXPECT_EQ(shifted[0], 6);
  EXPECT_EQ(shifted[1], 0);
  EXPECT_EQ(shifted[2], 2.5F);
}

TEST(WeightFormats, Int8IsSignedWithoutZeroPoints) {
  std::vector<int> bytes(32, 0);
  bytes[5] = 0xff;
  const HostTensor integers = bytes_of_row(bytes), zeros = bytes_of_row({200});
  HostTensor scales{{"scales", Role::input, DType::f16, 1, 1}, std::vector<std::byte>(2)};
  put_f16(scales, 0, 2);
  EXPECT_EQ(weights_of(kernels::WeightFormat::int8, 32, integers, &scales)[5], -2);
  EXPECT_EQ(weights_of(kernels::WeightFormat::int8, 32, integers, &scales, &zeros)[5], 110);
}

TEST(WeightFormats, Q4_0HasTheSecondHalfOfABlockInTheUpperHalves) {
  HostTensor block = bytes_of_row(std::vector<int>(18, 0x88));
  put_f16(block, 0, 0.25);
  block.data[2 + 3] = std::byte{0xe1};
  const auto weights = weights_of(kernels::WeightFormat::q4_0, 32, block);
  EXPECT_EQ(weights[3], (1 - 8) * 0.25F);
  EXPECT_EQ(weights[16 + 3], (14 - 8) * 0.25F);
  EXPECT_EQ(std::count(weights.begin(), weights.end(), 0.0F), 30);
}

TEST(WeightFormats, Q8_0HasSignedBytes) {
  HostTensor block = bytes_of_row(std::vector<int>(34, 0));
  put_f16(block, 0, 0.125);
  block.data[2] = std::byte{0x80};
  block.data[33] = std::byte{0x7f};
  const auto weights = weights_of(kernels::WeightFormat::q8_0, 32, block);
  EXPECT_EQ(weights[0], -16);
  EXPECT_EQ(weights[31], 127 * 0.125F);
}

TEST(WeightFormats, Q4_KHasScalesAndMinimaOfSixBits) {
  HostTensor block = bytes_of_row(std::vector<int>(144, 0));
  put_f16(block, 0, 0.5);
  put_f16(block, 2, 0.25);
  // Sub-block 1: scale 37, minimum 5. Sub-block 6: scale 0b110101, minimum 0b100011.
  block.data[4 + 1] = std::byte{37};
  block.data[8 + 1] = std::byte{5};
  block.data[4 + 2] = std::byte{0b11'000000};
  block.data[8 + 2] = std::byte{0b10'000000};
  block.data[12 + 2] = std::byte{0b0011'0101};
  block.data[16 + 7] = std::byte{0x90};            // sub-blocks 0 and 1, weight 7
  block.data[16 + 3 * 32 + 31] = std::byte{0x0b};  // sub-blocks 6 and 7, weight 31
  const auto weights = weights_of(kernels::WeightFormat::q4_k, 256, block);
  EXPECT_EQ(weights[32 + 7], 0.5F * 37 * 9 - 0.25F * 5);
  EXPECT_EQ(weights[32 + 8], -0.25F * 5);
  EXPECT_EQ(weights[6 * 32 + 31], 0.5F * 0b110101 * 11 - 0.25F * 0b100011);
  EXPECT_EQ(weights[0], 0);
}

TEST(WeightFormats, Q6_KHasTwoBitsOfEachWeightApart) {
  HostTensor block = bytes_of_row(std::vector<int>(210, 0));
  put_f16(block, 208, 0.5);
  block.data[192 + 8 + 5] = std::byte{0xfd};  // of weights 128 + 80 to 95: -3
  // Weight 128 + 64 + 20 = 212 is in the upper half of byte 64 + 20, with bits 4 and 5 of byte
  // 128 + 32 + 20.
  block.data[64 + 20] = std::byte{0xc0};
  block.data[128 + 32 + 20] = std::byte{0b00'10'0000};
  const auto weights = weights_of(kernels::WeightFormat::q6_k, 256, block);
  EXPECT_EQ(weights[212], 0.5F * -3 * ((12 | 2 << 4) - 32));
  EXPECT_EQ(weights[213], 0.5F * -3 * -32);
  EXPECT_EQ(weights[0], 0);
}

TEST(WeightFormats, Mxfp4HasNumbersAndPowersOfTwo) {
  std::vector<int> bytes(16, 0);
  for (int code = 0; code < 16; code += 2)
    bytes[static_cast<std::size_t>(code / 2)] = code | (code + 1) << 4;
  const HostTensor numbers = bytes_of_row(bytes);
  for (const auto& [code, scale] : {std::pair{0, 0x1p-127F}, {127, 1.0F}, {130, 8.0F}}) {
    const HostTensor scales = bytes_of_row({code});
    const auto weights = weights_of(kernels::WeightFormat::mxfp4, 32, numbers, &scales);
    const float sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(weights[i], sizes[i] * scale);
      EXPECT_EQ(weights[8 + i], -sizes[i] * scale);
    }
  }
  const HostTensor none = bytes_of_row({255});
  EXPECT_TRUE(std::isnan(weights_of(kernels::WeightFormat::mxfp4, 32, numbers, &none)[0]));
}

// The least and the largest scales whose weights f32 has, and those that are no numbers: these make
// a column NaN, and no other one.
TEST(QuantizedGemm, ExtremeScalesOfMxfp4) {
  const Operation& operation = built_in("quantized_gemm");
  for (const auto& [where, least, config] :
       {std::tuple{"hip-host:0", 0, "gemv THREADS=32 COLS=1 TN=2 ROWS=2 UNROLL=1 ACROSS=0 SPLIT=1"},
        {"hip-host:0", 0, "tiled BM=8 BN=16 BK=32 TM=1 TN=2"},
        {"vulkan:0", 1, "gemv THREADS=32 COLS=1 TN=2 ROWS=2 UNROLL=1 ACROSS=0 SPLIT=1"},
        {"vulkan:0", 3, "tiled BM=8 BN=16 BK=32 TM=1 TN=2"}}) {  // drivers may flush f32 to zero
    SCOPED_TRACE(std::string(where) + " " + config);
    const auto problem =
        Problem::parse("quantized_gemm dtype=f32 out=f32 weights=mxfp4 m=2 n=16 k=64").value();
    auto inputs = operation.inputs(problem, 1, kernels::InputStyle::plain);
    HostTensor& a = inputs[0];
    for (std::size_t i = 0; i < a.spec.elements(); ++i) {
      store_element(DType::f32, a.data.data(), i, i % 3 == 0 ? 0x1p-8 : -0x1p-9);
    }
    const auto set_scales = [&](int second) {
      const int codes[] = {least, second, 252, 127};  // 6 x 2^125 is below 2^128
      for (std::size_t i = 0; i < inputs[2].data.size(); ++i) {
        const std::size_t row = i / 2;  // whose first scale is 1 in place of the second code
        inputs[2].data[i] = static_cast<std::byte>(codes[row % 4 == 1 && i % 2 == 0 ? 3 : row % 4]);
      }
    };
    Device& on = device(where);
    const auto parsed = operation.space(problem, on.info()).parse(config);
    ASSERT_TRUE(parsed) << parsed.failure().message;
    const auto plan = operation.plan(problem, on.info(), *parsed);
    ASSERT_TRUE(plan) << plan.failure().message;
    set_scales(127);
    const auto numbers = run_plan(on, *plan, operation.tensors(problem), inputs);
    ASSERT_TRUE(numbers) << numbers.failure().message;
    const Verdict verdict = operation.reference(problem, inputs, 1)->check(numbers->outputs);
    EXPECT_TRUE(verdict.passed) << verdict.detail;
    set_scales(255);
    const auto done = run_plan(on, *plan, operation.tensors(problem), inputs);
    ASSERT_TRUE(done) << done.failure().message;
    for (std::size_t i = 0; i < 32; ++i) {
      const double value = done->outputs[0].at(i);
      if (i % 4 == 1) {
        EXPECT_TRUE(std::isnan(value)) << i;
      } else {
        EXPECT_EQ(value, numbers->outputs[0].at(i)) << i;
      }
    }
  }
}

TEST(QuantizedGemm, RowsOfWeightsAreWholeBlocks) {
  const Operation& operation = built_in("quantized_gemm");
  const auto check = [&](const char* key) {
    return kernels::check_problem(operation, Problem::parse(key).value());
  };
  EXPECT_TRUE(check("quantized_gemm dtype=f16 out=f16 weights=q4_0 m=1 n=8 k=32"));
  const auto part = check("quantized_gemm dtype=f16 out=f16 weights=q4_k m=1 n=8 k=128");
  ASSERT_FALSE(part);
  EXPECT_EQ(part.failure().field->field, "k");
  const auto group =
      check("quantized_gemm dtype=f16 out=f16 weights=q4_0 group=\"64\" m=1 n=8 k=64");
  ASSERT_FALSE(group);
  EXPECT_EQ(group.failure().field->field, "group");
}

// What AWQ can't have is not recommended.
TEST(QuantizedGemm, PackingsSayWhichWeightsTheyHave) {
  const auto refused = [](const std::string& weights) {
    const auto checked = kernels::check_problem(
        built_in("quantized_gemm"),
        Problem::parse("quantized_gemm dtype=f16 out=f16 " + weights + " m=1 n=8 k=256").value());
    return checked ? std::string() : checked.failure().message;
  };
  for (const char* format : {"int8", "q4_0"}) {
    EXPECT_NE(refused("weights=" + std::string(format) + " packing=awq")
                  .find("needs weights int4; gptq and gptq_v2 have int8 as well"),
              std::string::npos);
  }
  EXPECT_NE(refused("weights=q4_0 packing=gptq").find("needs weights int4 or int8"),
            std::string::npos);
  EXPECT_EQ(refused("packing=awq"), "");
  EXPECT_EQ(refused("weights=int8 packing=gptq"), "");
}

TEST(QuantizedGemm, AdversarialScalesAreZeroDenormalOrNegative) {
  const Operation& operation = built_in("quantized_gemm");
  const auto problem =
      Problem::parse("quantized_gemm dtype=f16 out=f32 group=\"32\" m=2 n=64 k=256").value();
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto inputs = operation.inputs(problem, seed, kernels::InputStyle::adversarial);
    const HostTensor& scales = kernels::tensor_named(inputs, "scales");
    for (std::size_t i = 0; i < scales.spec.elements(); ++i) {
      const double scale = scales.at(i);
      if (scale == 0) kinds.insert("zero");
      if (scale < 0) kinds.insert("negative");
      if (scale != 0 && std::abs(scale) < smallest_normal(DType::f16)) kinds.insert("denormal");
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"denormal", "negative", "zero"}));
}

// What a kernel reads at least is what the problem has to move: scales and zero points are a tenth
// of it with int4 in groups of 32.
TEST(QuantizedGemm, WorkCountsScalesAndZeroPoints) {
  const DeviceInfo device = architecture_info("sm_90").value();
  const Operation& operation = built_in("quantized_gemm");
  for (const char* attributes :
       {"group=\"32\" zeros=groups", "group=\"64\"", "weights=int8", "weights=q4_k", "zeros=groups",
        "weights=mxfp4", "epilogue=residual", "epilogue=swiglu"}) {
    const Problem problem =
        Problem::parse(
            fmt::format("quantized_gemm dtype=f16 out=f16 {} m=1 n=4096 k=4096", attributes))
            .value();
    const double bytes = operation.work(problem).bytes;
    const auto shape = operation.shape(problem);
    for (const Variant& variant : operation.variants) {
      for (const Config& config : variant.defaults(shape, device)) {
        const KernelWork work = variant.work(shape, device, config);
        ASSERT_EQ(work.size(), 1U);
        EXPECT_NEAR(work[0].unique_bytes, bytes, 1) << attributes << " " << config.text();
        // A workgroup of each column reads all of B and what is beside it.
        EXPECT_GE(work[0].workgroups * work[0].read_bytes, bytes - 4096 * 2)
            << attributes << " " << config.text();
      }
    }
  }
}

}  // namespace
}  // namespace greta::test::quantized_gemm_test
