#include <fmt/format.h>

#include <cmath>

#include "kernels/model/adversarial.hpp"
#include "tests/kernels/hopper_runner.hpp"

// Protects: variant `digits` of quantized_gemm, on the sm_80 that hip-host emulates: all numbers of
// f16 as digits, sums that cancel, elements far larger than those that have a weight, infinities
// and NaN; each format and epilogue, waves with fewer pairs than others, and workgroups that stay.
namespace greta::test::quantized_gemm_digits_test {
namespace {

struct Case {
  Problem problem;
  Config config;
};

Case case_of(const char* key, const char* parameters) {
  const Problem problem = catalog().read(fmt::format("quantized_gemm {}", key)).value();
  const auto config = built_in("quantized_gemm")
                          .space(problem, hopper_of_two_units())
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

// The bound is that of products, which are small: neither a large element without a weight nor
// large elements that cancel may hide the others.
TEST(QuantizedGemmDigits, LargeElementsHideNoSmallOnes) {
  const Case c = case_of("dtype=f16 out=f32 m=1 n=16 k=512", "WAVES=2 TN=1 STAGES=2 RESIDENT=1");
  auto inputs = built_in("quantized_gemm").inputs(c.problem, 1, kernels::InputStyle::plain);
  for (std::int64_t i = 0; i < 512; ++i) {
    store_element(DType::f16, inputs[0].data.data(), static_cast<std::size_t>(i),
                  std::ldexp(1 + 0.125 * static_cast<double>(i % 7), -16));
  }
  for (const std::int64_t i : {3, 100, 131, 255}) {
    store_element(DType::f16, inputs[0].data.data(), static_cast<std::size_t>(2 * i), 65504.0);
    store_element(DType::f16, inputs[0].data.data(), static_cast<std::size_t>(2 * i + 1), -60000.0);
    set_bytes(inputs[1], i, 0x88);  // both weights are 0
  }
  expect_right_of_hopper(c.problem, c.config, inputs);
}

TEST(QuantizedGemmDigits, InfinitiesAndNan) {
  for (const char* weights : {"int4", "int8", "int4 zeros=groups", "int8 zeros=groups"}) {
    const Case c =
        case_of(fmt::format("dtype=f16 out=f32 weights={} m=1 n=40 k=1024", weights).c_str(),
                "WAVES=2 TN=2 STAGES=2 RESIDENT=1");
    for (const auto& [first, second] :
         {std::pair{0x7c00, 0x3c00}, {0xfc00, 0x3c00}, {0x7c00, 0xfc00}, {0x7e01, 0x3c00}}) {
      for (const auto& [i, j] : {std::pair{0, 1}, {517, 518}, {1023, 130}, {383, 900}}) {
        auto inputs = built_in("quantized_gemm").inputs(c.problem, 1, kernels::InputStyle::plain);
        set_bits(inputs[0], i, static_cast<std::uint16_t>(first));
        set_bits(inputs[0], j, static_cast<std::uint16_t>(second));
        expect_right_of_hopper(c.problem, c.config, inputs);
      }
    }
  }
}

TEST(QuantizedGemmDigits, RandomProblemsAreRightOnAdversarialInputs) {
  std::uint64_t seed = 1;
  for (const auto& [problem, config] :
       random_candidates(built_in("quantized_gemm"), hopper_of_two_units(), "digits", 6, 1)) {
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, ++seed);
  }
}

}  // namespace
}  // namespace greta::test::quantized_gemm_digits_test
