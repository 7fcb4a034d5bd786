// Protects: the meaning of each number of eight bits, by values that are worked out by hand and by
// conversions of all of them, which problems are refused, that adversarial inputs have special
// numbers and scales, that the reference expects NaN and infinities where they belong, and that
// long sums are right or refused.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"

namespace greta::test::scaled_gemm_test {
namespace {

using kernels::ByteFormat;
using kernels::decode_byte;
using kernels::encode_byte;

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(ByteFormats, HaveTheNumbersOfTheirSpecifications) {
  EXPECT_EQ(decode_byte(ByteFormat::e4m3, 0x38), 1);
  EXPECT_EQ(decode_byte(ByteFormat::e4m3, 0x7e), 448);
  EXPECT_EQ(decode_byte(ByteFormat::e4m3, 0x01), 0x1p-9F);
  EXPECT_EQ(decode_byte(ByteFormat::e4m3, 0x08), 0x1p-6F);
  EXPECT_TRUE(std::isnan(decode_byte(ByteFormat::e4m3, 0x7f)));
  EXPECT_TRUE(std::isnan(decode_byte(ByteFormat::e4m3, 0xff)));
  EXPECT_EQ(decode_byte(ByteFormat::e5m2, 0x3c), 1);
  EXPECT_EQ(decode_byte(ByteFormat::e5m2, 0xfb), -57344);
  EXPECT_EQ(decode_byte(ByteFormat::e5m2, 0x01), 0x1p-16F);
  EXPECT_EQ(decode_byte(ByteFormat::e5m2, 0xfc), -infinity);
  EXPECT_TRUE(std::isnan(decode_byte(ByteFormat::e5m2, 0x7d)));
  EXPECT_EQ(decode_byte(ByteFormat::e4m3_fnuz, 0x40), 1);
  EXPECT_EQ(decode_byte(ByteFormat::e4m3_fnuz, 0x7f), 240);
  EXPECT_EQ(decode_byte(ByteFormat::e4m3_fnuz, 0x01), 0x1p-10F);
  EXPECT_TRUE(std::isnan(decode_byte(ByteFormat::e4m3_fnuz, 0x80)));
  EXPECT_EQ(decode_byte(ByteFormat::e5m2_fnuz, 0x40), 1);
  EXPECT_EQ(decode_byte(ByteFormat::e5m2_fnuz, 0x7f), 57344);
  EXPECT_EQ(decode_byte(ByteFormat::e5m2_fnuz, 0x01), 0x1p-17F);
  EXPECT_TRUE(std::isnan(decode_byte(ByteFormat::e5m2_fnuz, 0x80)));
  EXPECT_EQ(decode_byte(ByteFormat::int8, 0x80), -128);
  EXPECT_EQ(decode_byte(ByteFormat::int8, 0x7f), 127);
  constexpr float four_bits[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (int code = 0; code < 8; ++code) {
    EXPECT_EQ(decode_byte(ByteFormat::e2m1, static_cast<std::uint8_t>(code)), four_bits[code]);
    // The upper half is another number.
    EXPECT_EQ(decode_byte(ByteFormat::e2m1, static_cast<std::uint8_t>(code | 0xf8)),
              -four_bits[code]);
  }
}

TEST(ByteFormats, ConversionsRoundToNearestEvenAndSaturate) {
  for (const auto& traits : kernels::byte_format_table) {
    SCOPED_TRACE(traits.name);
    for (int byte = 0; byte < 1 << traits.bits; ++byte) {
      const float value = decode_byte(traits.format, static_cast<std::uint8_t>(byte));
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(encode_byte(traits.format, value), byte);
    }
    const float most = decode_byte(traits.format, encode_byte(traits.format, 1e30));
    EXPECT_EQ(most, traits.largest);
    EXPECT_EQ(decode_byte(traits.format, encode_byte(traits.format, infinity)), most);
    const float nan = decode_byte(traits.format, encode_byte(traits.format, NAN));
    const bool has_nan = traits.format != ByteFormat::int8 && traits.format != ByteFormat::e2m1;
    EXPECT_EQ(std::isnan(nan), has_nan);
  }
  EXPECT_EQ(decode_byte(ByteFormat::e4m3, encode_byte(ByteFormat::e4m3, 1.0625)), 1);
  EXPECT_EQ(decode_byte(ByteFormat::e4m3, encode_byte(ByteFormat::e4m3, 1.1875)), 1.25F);
  EXPECT_EQ(decode_byte(ByteFormat::e4m3, encode_byte(ByteFormat::e4m3, 1.97)), 2);
  EXPECT_EQ(encode_byte(ByteFormat::e4m3, 0x1p-10), 0);
  EXPECT_EQ(encode_byte(ByteFormat::e4m3, 0x1.8p-10), 1);
  EXPECT_EQ(encode_byte(ByteFormat::e4m3, -0.0), 0x80);
  EXPECT_EQ(encode_byte(ByteFormat::e4m3_fnuz, -0.0), 0);
  EXPECT_EQ(encode_byte(ByteFormat::e4m3_fnuz, -0x1p-12), 0);
  EXPECT_EQ(encode_byte(ByteFormat::int8, -2.5), 0xfe);
  EXPECT_EQ(encode_byte(ByteFormat::e2m1, 0.25), 0);
  EXPECT_EQ(encode_byte(ByteFormat::e2m1, 0.75), 2);
  EXPECT_EQ(encode_byte(ByteFormat::e2m1, -2.5), 0xc);
  EXPECT_EQ(encode_byte(ByteFormat::e2m1, 5), 6);
}

Result<Problem> problem_of(std::vector<std::pair<std::string, std::string>> fields) {
  return make_problem(built_in("scaled_gemm"), {std::move(fields), "f32", "f32"});
}

TEST(ScaledGemm, RefusesRowsThatAreNoWholeLoadsAndSumsBeyond32Bits) {
  const auto odd = problem_of({{"m", "2"}, {"n", "2"}, {"k", "24"}});
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.failure().message.find("multiple of 16"), std::string::npos);
  EXPECT_FALSE(problem_of({{"format", "int8"}, {"m", "2"}, {"n", "2"}, {"k", "131072"}}));
  EXPECT_TRUE(problem_of(
      {{"format", "int8"}, {"scales", "block"}, {"m", "2"}, {"n", "2"}, {"k", "131072"}}));
  EXPECT_TRUE(problem_of({{"m", "2"}, {"n", "2"}, {"k", "131072"}}));
}

TEST(ScaledGemm, AdversarialInputsHaveSpecialNumbersAndScales) {
  const Operation& operation = built_in("scaled_gemm");
  bool nan = false, infinite = false, zero = false, denormal = false, largest = false;
  const Problem problem =
      problem_of({{"format", "e5m2"}, {"scales", "row"}, {"m", "60"}, {"n", "60"}, {"k", "32"}})
          .value();
  for (std::uint64_t seed = 1; seed < 12; ++seed) {
    bool finite = true, tiny = false;
    for (const HostTensor& tensor : operation.inputs(problem, seed, InputStyle::adversarial)) {
      for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
        if (tensor.spec.dtype == DType::u8) {
          const float value =
              decode_byte(ByteFormat::e5m2, static_cast<std::uint8_t>(tensor.at(i)));
          nan = nan || std::isnan(value);
          infinite = infinite || std::isinf(value);
          finite = finite && std::isfinite(value);
          largest = largest || std::abs(value) == 57344;
        } else {
          zero = zero || tensor.at(i) == 0;
          tiny = tiny || (tensor.at(i) != 0 && std::abs(tensor.at(i)) < 0x1p-126);
        }
      }
    }
    denormal = denormal || tiny;
    EXPECT_TRUE(finite || !tiny) << "devices may flush a scale: infinity times 0 is NaN";
  }
  EXPECT_TRUE(nan && infinite && zero && denormal && largest);
}

/// Returns the reference's verdict of a product of ones with one special number in A's first row.
Verdict verdict_of(std::uint8_t special, float first_row) {
  const Operation& operation = built_in("scaled_gemm");
  const Problem problem =
      problem_of({{"format", "e5m2"}, {"m", "2"}, {"n", "3"}, {"k", "16"}}).value();
  std::vector<HostTensor> inputs;
  for (const TensorSpec& spec : operation.tensors(problem)) {
    if (spec.role != Role::input) continue;
    HostTensor& tensor = inputs.emplace_back(HostTensor{spec, {}});
    tensor.data.resize(spec.bytes(), std::byte{0x3c});
    if (spec.dtype == DType::f32) store_element(DType::f32, tensor.data.data(), 0, 1);
  }
  inputs[0].data[5] = std::byte{special};
  HostTensor c{operation.tensors(problem).back(), {}};
  c.data.resize(c.spec.bytes());
  for (std::size_t i = 0; i < 6; ++i) {
    store_element(DType::f32, c.data.data(), i, i < 3 ? first_row : 16);
  }
  return operation.reference(problem, inputs, 1)->check({c});
}

TEST(ScaledGemm, TheReferenceExpectsWhatIsNotFinite) {
  EXPECT_TRUE(verdict_of(0x7e, NAN).passed);
  EXPECT_FALSE(verdict_of(0x7e, 16).passed);
  EXPECT_TRUE(verdict_of(0xfc, -infinity).passed);
  EXPECT_FALSE(verdict_of(0xfc, infinity).passed);
  EXPECT_FALSE(verdict_of(0xfc, NAN).passed);
  EXPECT_FALSE(verdict_of(0x3c, NAN).passed);
  EXPECT_TRUE(verdict_of(0x3c, 16).passed);
}

// Mesa's CPU driver ends the loops of a thread after 65535 iterations, without an error.
TEST(TilesOfBytes, OfLongSumsEndBeforeTheCpuDriverEndsThem) {
  const DeviceInfo& device = test::device().info();
  for (const auto& [name, attribute] : {std::pair{"scaled_gemm", std::pair{"format", "e4m3"}},
                                        {"quantized_gemm", {"weights", "q4_0"}}}) {
    const Operation& operation = built_in(name);
    const auto problem_of = [&](std::int64_t k) {
      return make_problem(operation, {{{"m", "16"},
                                       {"n", "16"},
                                       {"k", std::to_string(k)},
                                       {attribute.first, attribute.second}},
                                      "f32",
                                      "f32"})
          .value();
    };
    const auto tiles = [&](std::int64_t k) {
      std::vector<Config> configs;
      const Problem problem = problem_of(k);
      for (const Config& config :
           operation.variant("tiled").defaults(operation.shape(problem), device)) {
        if (operation.plan(problem, device, config)) configs.push_back(config);
      }
      return configs;
    };
    const auto some = tiles(40960);
    ASSERT_FALSE(some.empty()) << name;
    const Problem problem = problem_of(40960);
    test::expect_right(operation, problem, operation.plan(problem, device, some.front()), name);
    EXPECT_TRUE(tiles(131072).empty()) << name;
  }
}

}  // namespace
}  // namespace greta::test::scaled_gemm_test
