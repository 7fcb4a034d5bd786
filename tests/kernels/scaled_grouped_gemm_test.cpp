// Protects: groups of rows are multiplied by fp8 and integers of their own, with scales of each
// group, row and block, in every distribution of rows; and the reference of that is the one of
// grouped_gemm for the scaled numbers, gates included.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/model/byte_formats.hpp"
#include "tests/kernels/group_cases.hpp"

namespace greta::test::scaled_grouped_gemm_test {
namespace {

using kernels::ByteFormat;

const Operation& operation() {
  return built_in("scaled_grouped_gemm");
}

struct Words {
  const char* format = "e4m3";
  const char* scales = "tensor";
  const char* epilogue = "none";
};

Problem problem_of(bool masked, const Words& words, DType type, std::int64_t n = 36,
                   std::int64_t k = 144) {
  Problem problem{"scaled_grouped_gemm", type, type, {}, {}};
  if (masked) problem.attributes.emplace_back("form", "masked");
  const auto add = [&](const char* name, const std::string& value, const char* usual) {
    if (value != usual) problem.attributes.emplace_back(name, value);
  };
  add("format", words.format, "e4m3");
  add("scales", words.scales, "tensor");
  add("epilogue", words.epilogue, "none");
  problem.dims = dims_of_groups(masked, n, k);
  return problem;
}

class ScaledGroupedGemm : public ::testing::TestWithParam<std::string> {};

TEST_P(ScaledGroupedGemm, ComputesAnyDistributionOfRows) {
  Device& device = test::device(GetParam());
  for (const char* scales : {"tensor", "row", "block"}) {
    expect_right_groups(device, operation(), problem_of(false, {"e4m3", scales}, DType::bf16));
    expect_right_groups(device, operation(), problem_of(true, {"int8", scales}, DType::f32));
  }
  expect_right_groups(device, operation(), problem_of(true, {"e5m2", "row"}, DType::f16));
  expect_right_groups(device, operation(), problem_of(false, {"e4m3_fnuz"}, DType::f32));
}

// Blocks of lines of B end within a group's gates, and between these and their ups.
TEST_P(ScaledGroupedGemm, ComputesGatesOfEachGroup) {
  Device& device = test::device(GetParam());
  const auto expect = [&](bool masked, const Words& words, DType type, std::int64_t n) {
    expect_right_groups(device, operation(), problem_of(masked, words, type, n));
  };
  expect(false, {"e4m3", "tensor", "swiglu"}, DType::bf16, 36);
  expect(true, {"e5m2", "row", "geglu"}, DType::f32, 37);
  expect(true, {"e4m3", "block", "swiglu"}, DType::f16, 160);
  expect(false, {"int8", "block", "geglu"}, DType::bf16, 130);
}

INSTANTIATE_TEST_SUITE_P(Devices, ScaledGroupedGemm, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

double scale_of(const HostTensor& scales, const std::string& shared, std::int64_t group,
                std::int64_t line, std::int64_t lines_of_block, std::int64_t k) {
  const std::int64_t row = shared == "tensor" ? group : line / lines_of_block;
  const std::int64_t at = row * scales.spec.cols + (shared == "block" ? k / 128 : 0);
  return scales.at(static_cast<std::size_t>(at));
}

/// Returns act(gate) * up, or the product, of a row and a column by plain loops.
double element(const Problem& problem, const std::vector<HostTensor>& inputs, std::int64_t group,
               std::int64_t row, std::int64_t col) {
  const std::int64_t n = problem.dim("n"), k = problem.dim("k");
  const std::string shared = problem.attribute("scales", "tensor");
  const std::string epilogue = problem.attribute("epilogue", "none");
  const auto format = kernels::byte_format_from_string(problem.attribute("format", "e4m3")).value();
  const auto number = [&](const HostTensor& tensor, std::int64_t at) {
    const std::byte byte = tensor.data[static_cast<std::size_t>(at)];
    return double{kernels::decode_byte(format, std::to_integer<std::uint8_t>(byte))};
  };
  const std::int64_t lines = epilogue == "none" ? n : 2 * n;
  const std::int64_t of_block = shared == "block" ? 128 : 1;
  const std::int64_t whole_lines = (lines + of_block - 1) / of_block * of_block;  // of a group
  const auto product = [&](std::int64_t line) {
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t place = whole_lines * group + line;
      sum += number(inputs[0], row * k + i) * scale_of(inputs[2], shared, group, row, 1, i) *
             number(inputs[1], (group * lines + line) * k + i) *
             scale_of(inputs[3], shared, group, place, of_block, i);
    }
    return sum;
  };
  if (epilogue == "none") return product(col);
  const double gate = product(col), up = product(n + col);
  return gate / (1 + std::exp(-gate)) * up;
}

TEST(ScaledGroupedGemmReference, IsThatOfTheScaledNumbers) {
  for (const char* scales : {"tensor", "row", "block"}) {
    for (const bool masked : {false, true}) {
      const Problem problem =
          problem_of(masked, {"e4m3", scales, masked ? "swiglu" : "none"}, DType::f32, 70, 272);
      auto inputs = operation().inputs(problem, 1);
      const GroupRows rows = distributions(masked).back();
      set_rows(inputs, rows);
      const auto got = operation().reference(problem, inputs, 1)->expected().value().front();
      std::int64_t first = 0;
      for (std::int64_t group = 0; group < 5; ++group) {
        const std::int64_t count = rows[static_cast<std::size_t>(group)];
        if (masked) first = group * rows_of_masked;
        for (std::int64_t i = 0; i < count * 70; ++i) {
          const std::int64_t row = first + i / 70, col = i % 70;
          const double want = element(problem, inputs, group, row, col);
          const auto& expected = got[static_cast<std::size_t>(row * 70 + col)];
          ASSERT_NEAR(expected.value, want, 1e-9 * (1 + std::abs(want)))
              << scales << ' ' << group << ' ' << row << ' ' << col;
        }
        first += count;
      }
    }
  }
}

TEST(ScaledGroupedGemmProblem, HasWholeLoadsAndLinesOfThirtyTwoBits) {
  Problem problem = problem_of(false, {}, DType::f16);
  EXPECT_TRUE(operation().check(problem));
  problem.extent("k") = 152;
  EXPECT_NE(operation().check(problem).failure().message.find("multiple of 16"), std::string::npos);
  problem.extent("k") = 144;
  problem.extent("n") = 1 << 22;
  problem.extent("groups") = 1 << 10;
  EXPECT_NE(operation().check(problem).failure().message.find("groups"), std::string::npos);
}

// What lies in rows of no group must not reach others: their numbers and scales are NaN.
TEST(ScaledGroupedGemmInputs, HideRowsOfNoGroup) {
  const Problem problem = problem_of(true, {"e4m3", "row"}, DType::f32);
  std::size_t hidden = 0;
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    const auto inputs = operation().inputs(problem, seed, InputStyle::adversarial);
    for (std::int64_t group = 0; group < 5; ++group) {
      const double count = inputs.back().at(static_cast<std::size_t>(group));
      for (std::int64_t row = 0; row < rows_of_masked; ++row) {
        if (static_cast<double>(row) < count) continue;
        const auto at = static_cast<std::size_t>(group * rows_of_masked + row);
        ++hidden;
        ASSERT_TRUE(std::isnan(inputs[2].at(at)));
        ASSERT_EQ(inputs[0].data[at * 144 + 100], std::byte{0x7f});
      }
    }
  }
  EXPECT_GT(hidden, 0U);
}

}  // namespace
}  // namespace greta::test::scaled_grouped_gemm_test
