// Protects: what quantize makes of special numbers on every kind of device, in every format and
// variant: the largest and subnormal numbers, ties, NaN, infinities, rows of zeros, and given
// scales that are zero, negative, subnormal or infinite; that its codes and scales are those that
// scaled_gemm reads; and that its reference rejects codes that are not nearest.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::quantize_test {
namespace {

using kernels::ByteFormat;
using kernels::decode_byte;
using kernels::encode_byte;
using Row = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr float most = std::numeric_limits<float>::max();

const Operation& quantize() {
  return built_in("quantize");
}

Problem problem_of(ByteFormat format, const char* scales, std::int64_t rows, std::int64_t cols) {
  return make_problem(quantize(), {{{"format", std::string(kernels::to_string(format))},
                                    {"scales", scales},
                                    {"rows", std::to_string(rows)},
                                    {"cols", std::to_string(cols)}},
                                   "f32",
                                   "u8"})
      .value();
}

/// The outputs of a configuration on a device.
struct Outputs {
  std::string from;
  std::vector<std::vector<std::uint8_t>> codes;
  std::vector<double> scales;
};

/// Runs X, whose rows repeat `rows`: on hip-host, where compiling takes long, with the default.
std::vector<Outputs> run(const Problem& problem, const std::vector<Row>& rows, double scale) {
  const auto inputs = inputs_of(
      quantize(), problem,
      {{"X",
        [&](std::int64_t row, std::int64_t col) {
          return rows.at(static_cast<std::size_t>(row)).at(static_cast<std::size_t>(col % 8));
        }},
       {"scale", [&](std::int64_t, std::int64_t) { return scale; }}});
  const auto reference = quantize().reference(problem, inputs, 1);
  std::vector<Outputs> all;
  for (const std::string& id : unlike_devices()) {
    Device& on = device(id);
    std::vector<Config> configs = one_of_each(quantize(), problem, on.info(), 2);
    if (id.starts_with("hip-host")) configs.resize(1);
    for (const Config& config : configs) {
      const auto plan = quantize().plan(problem, on.info(), config).value();
      const auto done = run_plan(on, plan, quantize().tensors(problem), inputs).value();
      Outputs& outputs = all.emplace_back(Outputs{id + " | " + config.text(), {}, {}});
      EXPECT_EQ(done.overrun, "");
      const Verdict verdict = reference->check(done.outputs);
      EXPECT_TRUE(verdict.passed) << outputs.from << ": " << verdict.detail;
      const HostTensor& codes = done.outputs.front();
      for (std::size_t row = 0; row < rows.size(); ++row) {
        auto& list = outputs.codes.emplace_back();
        for (std::size_t col = 0; col < 8; ++col) {
          const auto cols = static_cast<std::size_t>(codes.spec.cols);
          list.push_back(static_cast<std::uint8_t>(codes.at(row * cols + col)));
        }
      }
      if (done.outputs.size() < 2) continue;
      const HostTensor& scales = done.outputs.back();
      for (std::size_t i = 0; i < scales.spec.elements(); ++i) {
        outputs.scales.push_back(scales.at(i));
      }
    }
  }
  return all;
}

/// Codes of numbers divided by 1.
std::vector<std::uint8_t> codes_of(ByteFormat format, const Row& row) {
  std::vector<std::uint8_t> codes;
  for (const double value : row) codes.push_back(encode_byte(format, value));
  return codes;
}

TEST(Quantize, SpecialNumbersOfEveryFormatAreAsTheFormatHasThem) {
  for (const auto& traits : kernels::byte_format_table) {
    if (traits.bits < 8) continue;
    const ByteFormat format = traits.format;
    const double most_of = traits.largest, nan = std::nan("");
    const double least = format == ByteFormat::int8 ? 1 : decode_byte(format, 1);
    const std::vector<Row> rows{
        {most_of, -most_of, 1, -1, least, least / 2, 1.5 * least, -0.0},  // ties to even
        {nan, 3, -2, most_of, 1, 0, 5, -most_of},
        {infinity, -infinity, 1, -1, 0, 2, 3, 4},
        {0, 0, 0, 0, 0, 0, -0.0, 0},
        {0x1p-127, -0x1p-130, 0x1p-149, 0, 0, 0, 0, 0}};
    const bool blocks = format == ByteFormat::e5m2 || format == ByteFormat::int8;
    for (const char* scales : {blocks ? "block" : "row"}) {
      const Problem problem = problem_of(format, scales, 5, 136);
      for (const Outputs& got : run(problem, rows, 0)) {
        SCOPED_TRACE(std::string(traits.name) + " " + scales + " | " + got.from);
        const std::size_t per_row = got.scales.size() / 5;
        const auto decoded = [&](std::size_t row, std::size_t col) {
          return decode_byte(format, got.codes[row][col]);
        };
        EXPECT_FLOAT_EQ(static_cast<float>(got.scales[0]), 1);
        if (format != ByteFormat::int8) {
          EXPECT_EQ(decoded(0, 0), most_of);
          EXPECT_EQ(decoded(0, 4), least);
          EXPECT_TRUE(std::isnan(decoded(1, 0)));
          EXPECT_FLOAT_EQ(static_cast<float>(got.scales[per_row]), 1) << "NaN does not count";
          EXPECT_EQ(decoded(1, 3), most_of);
        } else {
          EXPECT_TRUE(std::isnan(got.scales[per_row])) << "integers have no NaN";
          EXPECT_EQ(decoded(1, 3), 0);
        }
        EXPECT_FLOAT_EQ(static_cast<float>(got.scales[2 * per_row] * most_of), most);
        EXPECT_EQ(decoded(2, 0), most_of);
        EXPECT_EQ(decoded(2, 1), -most_of);
        EXPECT_EQ(decoded(2, 2), 0);
        EXPECT_EQ(got.scales[3 * per_row], 0x1p-126);
        for (std::size_t col = 0; col < 8; ++col) EXPECT_EQ(decoded(3, col), 0);
        EXPECT_EQ(got.scales[4 * per_row], 0x1p-126);
        EXPECT_LE(std::abs(decoded(4, 0)), 1);
      }
    }
  }
}

TEST(Quantize, AGivenScaleSaturatesAndIsAtLeastTheSmallestNormalNumber) {
  const double nan = std::nan("");
  const Row row{1e30, -1e30, infinity, -infinity, nan, 0, 300, -0.25};
  for (const ByteFormat format : {ByteFormat::e4m3, ByteFormat::e5m2_fnuz, ByteFormat::int8}) {
    const Problem problem = problem_of(format, "tensor", 1, 8);
    for (const double scale : {1.0, 0.0, -1.0, nan, 0x1p-149, infinity}) {
      const bool used = scale >= 0x1p-126;
      const double divisor = used ? scale : 0x1p-126;
      Row quotients;
      for (const double x : row) {
        quotients.push_back(std::isinf(scale) && !std::isnan(x) ? 0 : x / divisor);
      }
      const auto want = codes_of(format, quotients);
      for (const Outputs& got : run(problem, {row}, scale)) {
        SCOPED_TRACE(std::string(to_string(format)) + " by " + std::to_string(scale) + " | " +
                     got.from);
        for (std::size_t col = 0; col < 8; ++col) {
          const float code = decode_byte(format, got.codes[0][col]);
          const float wanted = decode_byte(format, want[col]);
          EXPECT_TRUE(code == wanted || (std::isnan(code) && std::isnan(wanted)))
              << code << " for " << wanted;
        }
      }
    }
  }
}

TEST(Quantize, FusedOperationsAreRightWithRowsApart) {
  for (const char* key :
       {"quantize dtype=bf16 out=u8 scales=block fused=rmsnorm rows=5 cols=264",
        "quantize dtype=f16 out=u8 format=int8 fused=add_rmsnorm x_stride=\"272\" rows=3 cols=264",
        "quantize dtype=bf16 out=u8 format=e4m3_fnuz fused=layernorm x_stride=\"304\" "
        "q_stride=\"272\" rows=5 cols=264",
        "quantize dtype=f32 out=u8 format=int8 scales=block fused=layernorm affine=weight rows=3 "
        "cols=516",
        "quantize dtype=f16 out=u8 scales=tensor fused=layernorm affine=none rows=9 cols=136",
        "quantize dtype=f32 out=u8 format=e5m2_fnuz scales=tensor fused=silu_mul rows=3 cols=516",
        "quantize dtype=f16 out=u8 scales=block fused=silu_mul layout=packed x_stride=\"400\" "
        "q_stride=\"144\" rows=9 cols=136"}) {
    const Problem problem = catalog().read(key).value();
    for (const std::string& id : unlike_devices()) {
      expect_right_for(quantize(), problem, quantize().inputs(problem, 4), device(id));
    }
  }
}

/// The scale is that of the largest number's exponent: 1 if this is the exponent of the format's
/// largest.
TEST(Quantize, ScalesOfMicroscalingFormatsArePowersOfTwo) {
  for (const ByteFormat format : {ByteFormat::e4m3, ByteFormat::e5m2, ByteFormat::e2m1}) {
    const double most_of = kernels::traits(format).largest, nan = std::nan("");
    const int exponent = std::ilogb(most_of), bits = kernels::traits(format).bits;
    const double least = decode_byte(format, 1), power = std::ldexp(1, exponent);
    const std::vector<Row> rows{
        {most_of, -most_of, 1, -1, least, least / 2, 1.5 * least, -0.0},  // ties to even
        {1.99 * power, -power, 1, -1, 0, 2, 3, 4},                        // saturates
        {nan, 3, -2, most_of, 1, 0, 5, -most_of},
        {infinity, -infinity, 1, -1, 0, 2, 3, 4},
        {0, 0, 0, 0, 0, 0, -0.0, 0},
        {0x1p-130, -0x1p-149, 0, 0, 0, 0, 0, 0}};
    const Problem problem = problem_of(format, "mx", 6, 96);
    for (const Outputs& got : run(problem, rows, 0)) {
      SCOPED_TRACE(std::string(kernels::to_string(format)) + " | " + got.from);
      ASSERT_EQ(got.scales.size(), 18U);
      const auto code = [&](std::size_t row, std::size_t col) {
        const int byte = got.codes[row][col * static_cast<std::size_t>(bits) / 8];
        const int shift = static_cast<int>(col) * bits % 8;
        return static_cast<std::uint8_t>(byte >> shift & (bits == 8 ? 255 : 15));
      };
      const bool has_nan = format != ByteFormat::e2m1;
      const double scales[] = {
          127, 127, has_nan ? 127.0 : 255.0, static_cast<double>(254 - exponent), 0, 0};
      for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(got.scales[i], scales[i / 3]) << i;
      for (std::size_t col = 0; col < 8; ++col) {
        for (const std::size_t row : {0, 1, 2}) {
          const double number = rows[row][col];
          const std::uint8_t expected = row == 2 && !has_nan ? 0 : encode_byte(format, number);
          if (std::isnan(number) && has_nan) {
            EXPECT_TRUE(std::isnan(decode_byte(format, code(row, col))));
          } else {
            EXPECT_EQ(decode_byte(format, code(row, col)), decode_byte(format, expected));
          }
        }
        EXPECT_EQ(decode_byte(format, code(4, col)), 0);
      }
      EXPECT_EQ(decode_byte(format, code(3, 0)), most_of);
      EXPECT_EQ(decode_byte(format, code(3, 1)), -most_of);
      EXPECT_EQ(decode_byte(format, code(3, 7)), 0);
    }
  }
}

TEST(Quantize, WritesWhatScaledGemmReads) {
  struct Choice {
    ByteFormat format;
    const char* scales;
    std::int64_t k;
  };
  for (const auto& [format, scales, k] : {Choice{ByteFormat::e5m2, "row", 272},
                                          {ByteFormat::e5m2, "block", 272},
                                          {ByteFormat::e5m2, "mx", 288},
                                          {ByteFormat::e2m1, "mx", 288}}) {
    const Problem codes = problem_of(format, scales, 6, k);
    const Problem product =
        make_problem(built_in("scaled_gemm"), {{{"format", std::string(to_string(format))},
                                                {"scales", scales},
                                                {"m", "6"},
                                                {"n", "3"},
                                                {"k", std::to_string(k)}},
                                               "f32",
                                               "f32"})
            .value();
    const auto written = quantize().tensors(codes), read = built_in("scaled_gemm").tensors(product);
    const TensorSpec &q = written[1], &s = written[2], &a = read[0], &of_a = read[2];
    EXPECT_EQ((std::tuple{q.dtype, q.rows, q.cols, q.row_stride()}),
              (std::tuple{a.dtype, a.rows, a.cols, a.row_stride()}));
    EXPECT_EQ((std::tuple{s.dtype, s.rows, s.cols, s.row_stride()}),
              (std::tuple{of_a.dtype, of_a.rows, of_a.cols, of_a.row_stride()}));
  }
}

TEST(Quantize, LayerNormsFarFromZeroKeepTheirDigits) {
  const Problem problem =
      catalog()
          .read(
              "quantize dtype=f32 out=u8 format=int8 fused=layernorm affine=none rows=4 cols=1000")
          .value();
  const auto inputs = inputs_of(quantize(), problem, {{"X", [](std::int64_t row, std::int64_t col) {
                                                         return 1e6 * static_cast<double>(row + 1) +
                                                                0.5 * static_cast<double>(col % 64);
                                                       }}});
  for (const std::string& id : unlike_devices()) {
    expect_right_for(quantize(), problem, inputs, device(id));
  }
}

TEST(Quantize, RefusesRowsOfNoWholeWordsAndAttributesOfOtherOperations) {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  for (const Fields& fields :
       {Fields{{"rows", "2"}, {"cols", "6"}},
        Fields{{"rows", "2"}, {"cols", "8"}, {"x_stride", "9"}},
        Fields{{"rows", "2"}, {"cols", "8"}, {"q_stride", "10"}},
        Fields{{"rows", "2"}, {"cols", "8"}, {"layout", "packed"}},
        Fields{{"rows", "2"}, {"cols", "8"}, {"affine", "none"}},
        Fields{{"rows", "2"}, {"cols", "32"}, {"format", "e2m1"}},
        Fields{{"rows", "2"}, {"cols", "32"}, {"format", "int8"}, {"scales", "mx"}},
        Fields{{"rows", "2"}, {"cols", "48"}, {"scales", "mx"}},
        Fields{{"rows", "2"}, {"cols", "8"}, {"fused", "rmsnorm"}, {"affine", "weight"}}}) {
    EXPECT_FALSE(make_problem(quantize(), {fields, "bf16", "u8"}));
  }
}

/// Returns the reference's verdict of codes of {16.5, 3, NaN, -2} by a given scale of 1.
Verdict verdict_of(ByteFormat format, const std::vector<std::uint8_t>& codes) {
  const Problem problem = problem_of(format, "tensor", 1, 4);
  const Row row{16.5, 3, std::nan(""), -2};
  const auto inputs = inputs_of(quantize(), problem,
                                {{"X", [&](std::int64_t, std::int64_t col) { return row.at(col); }},
                                 {"scale", [](std::int64_t, std::int64_t) { return 1; }}});
  HostTensor q{quantize().tensors(problem).back(), {}};
  for (const std::uint8_t code : codes) q.data.push_back(std::byte{code});
  return quantize().reference(problem, inputs, 1)->check({q});
}

TEST(Quantize, TheReferenceTakesTheNearestNumberOrEitherAtABorder) {
  EXPECT_TRUE(verdict_of(ByteFormat::int8, {16, 3, 0, 0xfe}).passed);
  EXPECT_TRUE(verdict_of(ByteFormat::int8, {17, 3, 0, 0xfe}).passed);
  EXPECT_FALSE(verdict_of(ByteFormat::int8, {18, 3, 0, 0xfe}).passed);
  EXPECT_FALSE(verdict_of(ByteFormat::int8, {16, 4, 0, 0xfe}).passed);
  EXPECT_FALSE(verdict_of(ByteFormat::int8, {16, 3, 1, 0xfe}).passed);
  EXPECT_FALSE(verdict_of(ByteFormat::int8, {16, 3, 0, 0x02}).passed);
  const std::uint8_t sixteen = encode_byte(ByteFormat::e4m3, 16.5);
  const std::uint8_t three = encode_byte(ByteFormat::e4m3, 3);
  EXPECT_TRUE(verdict_of(ByteFormat::e4m3, {sixteen, three, 0x7f, 0xc0}).passed);
  EXPECT_TRUE(verdict_of(ByteFormat::e4m3, {sixteen, three, 0xff, 0xc0}).passed);
  EXPECT_FALSE(verdict_of(ByteFormat::e4m3, {sixteen, three, 0x7e, 0xc0}).passed);
  const auto next = static_cast<std::uint8_t>(sixteen + 1);
  EXPECT_FALSE(verdict_of(ByteFormat::e4m3, {next, three, 0x7f, 0xc0}).passed);
}

}  // namespace
}  // namespace greta::test::quantize_test
