#include <fmt/format.h>

#include <cmath>

#include "kernels/model/adversarial.hpp"
#include "tests/kernels/hopper_runner.hpp"

// Protects: variant `digits` of quantized_gemm, on the sm_80 that hip-host emulates: all numbers of
// f16 and bf16 as digits, units of bf16 with elements that have none, sums that cancel, elements
// far larger than those that have a weight, infinities and NaN, scales that are far from 1; each
// format and epilogue, waves with fewer pairs than others, and workgroups that stay.
namespace greta::test::quantized_gemm_digits_test {
namespace {

struct Case {
  Problem problem;
  Config config;
};

Case case_of(const char* key, const char* parameters) {
  const Problem problem = catalog().read(fmt::format("quantized_gemm {}", key)).value();
  const auto config = built_in("quantized_gemm")
                          .space(problem, hopper_of(2))
                          .parse(fmt::format("digits {}", parameters));
  EXPECT_TRUE(config) << config.failure().message;
  return {problem, *config};
}

std::vector<Case> cases() {
  return {
      case_of("dtype=f16 out=f16 m=1 n=70 k=1280", "WAVES=2 TN=1 STAGES=2 RESIDENT=1"),
      case_of("dtype=f16 out=f32 m=1 n=100 k=768", "WAVES=2 TN=2 STAGES=3 RESIDENT=0"),
      case_of("dtype=f16 out=f32 weights=int8 epilogue=bias m=1 n=33 k=1024",
              "WAVES=4 TN=1 STAGES=2 RESIDENT=2"),
      case_of("dtype=f16 out=f16 epilogue=swiglu m=1 n=41 k=512",
              "WAVES=2 TN=2 STAGES=2 RESIDENT=1"),
      case_of("dtype=f16 out=f32 zeros=groups m=1 n=70 k=1280", "WAVES=2 TN=2 STAGES=2 RESIDENT=1"),
      case_of("dtype=f16 out=f32 weights=int8 zeros=groups m=1 n=40 k=512",
              "WAVES=2 TN=1 STAGES=2 RESIDENT=0"),
      case_of("dtype=f16 out=f16 epilogue=residual m=1 n=17 k=512",
              "WAVES=2 TN=1 STAGES=4 RESIDENT=1"),
      case_of("dtype=bf16 out=bf16 m=1 n=70 k=1280", "WAVES=2 TN=1 STAGES=2 RESIDENT=1"),
      case_of("dtype=bf16 out=f32 zeros=groups m=1 n=100 k=768",
              "WAVES=2 TN=2 STAGES=3 RESIDENT=0"),
      case_of("dtype=bf16 out=f32 weights=int8 epilogue=bias m=1 n=33 k=1024",
              "WAVES=4 TN=1 STAGES=2 RESIDENT=2"),
      case_of("dtype=bf16 out=f32 weights=int8 zeros=groups m=1 n=40 k=512",
              "WAVES=2 TN=2 STAGES=2 RESIDENT=1"),
      case_of("dtype=bf16 out=bf16 epilogue=swiglu m=1 n=41 k=512",
              "WAVES=2 TN=2 STAGES=2 RESIDENT=1"),
  };
}

TEST(QuantizedGemmDigits, IsRight) {
  for (const Case& c : cases()) {
    expect_right_of_hopper(c.problem, c.config, kernels::InputStyle::plain, 1);
    for (const std::uint64_t seed : {2, 3, 4, 5, 6, 7}) {
      expect_right_of_hopper(c.problem, c.config, kernels::InputStyle::adversarial, seed);
    }
  }
}

/// Sets the byte of weights (row, 2 i) and (row, 2 i + 1) of int4.
void set_bytes(HostTensor& weights, std::int64_t i, std::uint8_t byte) {
  for (std::int64_t row = 0; row < weights.spec.rows; ++row) {
    weights.data[static_cast<std::size_t>(row * weights.spec.cols + i)] = std::byte{byte};
  }
}

void set_bits(HostTensor& a, std::int64_t i, std::uint16_t bits) {
  std::memcpy(a.data.data() + 2 * i, &bits, sizeof bits);
}

// Digits of all magnitudes and signs meet, so that a wrong or missing one shows.
TEST(QuantizedGemmDigits, HasAllNumbersOfF16) {
  const Case c = case_of("dtype=f16 out=f32 m=1 n=16 k=512", "WAVES=2 TN=1 STAGES=2 RESIDENT=1");
  for (int exponent = 0; exponent < 31; ++exponent) {
    auto inputs = built_in("quantized_gemm").inputs(c.problem, 1, kernels::InputStyle::plain);
    for (std::int64_t i = 0; i < 512; ++i) {
      const auto mantissa = static_cast<unsigned>(i * 683 % 1024);
      const auto sign = static_cast<unsigned>(i * 7 / 3 % 2);
      set_bits(inputs[0], i,
               static_cast<std::uint16_t>(sign << 15 | unsigned(exponent) << 10 | mantissa));
    }
    expect_right_of_hopper(c.problem, c.config, inputs);
  }
}

// Elements of a unit differ by up to 2^40, so that some have no digits, also at the ends of the
// range of exponents.
TEST(QuantizedGemmDigits, HasAllNumbersOfBf16) {
  for (const char* weights : {"int4", "int8 zeros=groups"}) {
    const Case c =
        case_of(fmt::format("dtype=bf16 out=f32 weights={} m=1 n=16 k=512", weights).c_str(),
                "WAVES=2 TN=1 STAGES=2 RESIDENT=1");
    for (const int highest : {0, 50, 110, 160, 210, 250}) {
      for (const int span : {1, 17, 41}) {
        auto inputs = built_in("quantized_gemm").inputs(c.problem, 1, kernels::InputStyle::plain);
        for (std::int64_t i = 0; i < 512; ++i) {
          const int exponent = std::max(highest - static_cast<int>(i * 11 % span), 0);
          const auto mantissa = static_cast<unsigned>(i * 83 % 128);
          const auto sign = static_cast<unsigned>(i * 7 / 3 % 2);
          set_bits(inputs[0], i,
                   static_cast<std::uint16_t>(sign << 15 | unsigned(exponent) << 7 | mantissa));
        }
        expect_right_of_hopper(c.problem, c.config, inputs);
      }
    }
  }
}

// The bound is that of products, which are small: neither a large element without a weight nor
// large elements that cancel may hide the others.
TEST(QuantizedGemmDigits, LargeElementsHideNoSmallOnes) {
  for (const auto& [type, small, large] : {std::tuple{DType::f16, -16, 15},
                                           {DType::bf16, -16, 15},
                                           {DType::bf16, -16, 16},
                                           {DType::bf16, -16, 17},
                                           {DType::bf16, -16, 40},
                                           {DType::bf16, -100, 100},
                                           {DType::bf16, -120, -90},
                                           {DType::bf16, 60, 103},
                                           {DType::bf16, 80, 110}}) {
    const Case c = case_of(fmt::format("dtype={} out=f32 m=1 n=16 k=512", to_string(type)).c_str(),
                           "WAVES=2 TN=1 STAGES=2 RESIDENT=1");
    auto inputs = built_in("quantized_gemm").inputs(c.problem, 1, kernels::InputStyle::plain);
    const auto set = [&](std::int64_t i, double x) {
      store_element(type, inputs[0].data.data(), static_cast<std::size_t>(i), x);
    };
    for (std::int64_t i = 0; i < 512; ++i) {
      set(i, std::ldexp(1 + 0.125 * static_cast<double>(i % 7), small));
    }
    for (const std::int64_t i : {3, 100, 131, 255}) {
      set(2 * i, std::ldexp(1.75, large));
      set(2 * i + 1, -std::ldexp(1.5, large));
      set_bytes(inputs[1], i, 0x88);  // both weights are 0
    }
    expect_right_of_hopper(c.problem, c.config, inputs);
  }
}

// Neither sums of integers nor elements times integers may be beyond f32 where their products with
// scales are not, nor below it. Weights are in f32's range.
TEST(QuantizedGemmDigits, ScalesMayBeFarFromOne) {
  const Case c = case_of("dtype=bf16 out=f32 m=1 n=16 k=512", "WAVES=2 TN=1 STAGES=2 RESIDENT=1");
  for (const auto& [element, other, scale] : {std::tuple{-100, -118, 124},
                                              {-110, -130, 124},
                                              {-60, -120, 120},
                                              {100, 98, -120},
                                              {120, 70, -130},
                                              {0, -40, 100}}) {
    auto inputs = built_in("quantized_gemm").inputs(c.problem, 1, kernels::InputStyle::plain);
    for (std::int64_t i = 0; i < 512; ++i) {
      store_element(
          DType::bf16, inputs[0].data.data(), static_cast<std::size_t>(i),
          std::ldexp(1 + 0.25 * static_cast<double>(i % 3), i % 5 == 0 ? element : other));
    }
    for (std::size_t i = 0; i < 16 * 4; ++i) {
      store_element(DType::bf16, inputs[2].data.data(), i, std::ldexp(1.0, scale));
    }
    expect_right_of_hopper(c.problem, c.config, inputs);
  }
}

TEST(QuantizedGemmDigits, InfinitiesAndNan) {
  for (const auto& [type, infinity, nan] :
       {std::tuple{DType::f16, 0x7c00, 0x7e01}, {DType::bf16, 0x7f80, 0x7fc1}}) {
    for (const char* weights : {"int4", "int8", "int4 zeros=groups", "int8 zeros=groups"}) {
      const Case c = case_of(
          fmt::format("dtype={} out=f32 weights={} m=1 n=40 k=1024", to_string(type), weights)
              .c_str(),
          "WAVES=2 TN=2 STAGES=2 RESIDENT=1");
      for (const auto& [first, second] : {std::pair{infinity, 0x3c00},
                                          {infinity | 0x8000, 0x3c00},
                                          {infinity, infinity | 0x8000},
                                          {nan, 0x3c00}}) {
        for (const auto& [i, j] : {std::pair{0, 1}, {517, 518}, {1023, 130}, {383, 900}}) {
          auto inputs = built_in("quantized_gemm").inputs(c.problem, 1, kernels::InputStyle::plain);
          set_bits(inputs[0], i, static_cast<std::uint16_t>(first));
          set_bits(inputs[0], j, static_cast<std::uint16_t>(second));
          expect_right_of_hopper(c.problem, c.config, inputs);
        }
      }
    }
  }
}

TEST(QuantizedGemmDigits, RandomProblemsAreRightOnAdversarialInputs) {
  std::uint64_t seed = 1;
  for (const auto& [problem, config] :
       random_candidates(built_in("quantized_gemm"), hopper_of(2), "digits", 6, 1)) {
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, ++seed);
  }
}

}  // namespace
}  // namespace greta::test::quantized_gemm_digits_test
