// Protects: scaled_gemm with scales mx. Which problems are refused; what the reference expects of
// NaN and of a scale of 2^-127; special inputs; every variant's results for numbers whose sums are
// exact, with scales that differ from block to block; and the ways of `matrix` that hip-host's
// devices stand for only if they are planned for other GPUs: on 16-bit numbers by MFMA, on fp8 by
// mma, and the scaled MFMA of gfx950.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/problem_rules.hpp"
#include "kernels/model/weight_formats.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::scaled_gemm_mx_test {
namespace {

using kernels::ByteFormat;
using kernels::InputStyle;

Result<Problem> problem_of(std::vector<std::pair<std::string, std::string>> fields) {
  return make_problem(built_in("scaled_gemm"), {std::move(fields), "f32", "f32"});
}

TEST(Microscaling, RefusesWhatHasNoMeaning) {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  struct Choice {
    Fields fields;
    const char* reason;  ///< empty: it is a problem
  };
  const Choice choices[] = {
      {{{"scales", "mx"}}, ""},
      {{{"scales", "mx"}, {"format", "e2m1"}}, ""},
      {{{"scales", "mx"}, {"format", "e5m2"}, {"format_b", "e4m3"}}, ""},
      {{{"format", "e2m1"}}, "needs scales mx"},
      {{{"format_b", "e2m1"}}, "needs scales mx"},
      {{{"scales", "block"}, {"format_b", "e5m2"}}, "needs scales mx"},
      {{{"scales", "mx"}, {"format", "int8"}}, "must be e4m3, e5m2 or e2m1"},
      {{{"scales", "mx"}, {"format", "e4m3_fnuz"}}, "must be e4m3, e5m2 or e2m1"},
      {{{"scales", "mx"}, {"format_b", "e4m3"}}, "is the format of A, too"},
      {{{"scales", "mx"}, {"k", "48"}}, "must be a multiple of 32"},
  };
  for (const Choice& choice : choices) {
    Fields fields = choice.fields;
    for (const char* name : {"m", "n"}) fields.emplace_back(name, "2");
    const auto is_k = [](const auto& field) { return field.first == "k"; };
    if (std::none_of(fields.begin(), fields.end(), is_k)) fields.emplace_back("k", "64");
    const auto problem = problem_of(fields);
    if (*choice.reason == '\0') {
      EXPECT_TRUE(problem) << problem.failure().message;
    } else {
      ASSERT_FALSE(problem);
      EXPECT_NE(problem.failure().message.find(choice.reason), std::string::npos)
          << problem.failure().message;
    }
  }
}

/// Returns a product of ones, with scales of 1.
std::vector<HostTensor> ones(const Problem& problem) {
  std::vector<HostTensor> inputs;
  for (const TensorSpec& spec : built_in("scaled_gemm").tensors(problem)) {
    if (spec.role != Role::input) continue;
    HostTensor& tensor = inputs.emplace_back(HostTensor{spec, {}});
    const bool scales = spec.name.starts_with("scales");
    tensor.data.resize(spec.bytes(), scales ? std::byte{127} : std::byte{0x38});
  }
  return inputs;
}

/// Returns the reference's verdict of such a product of 2 x 3 with one other byte, if its first row
/// is `first_row` and its second one 64.
Verdict verdict_of(std::size_t operand, std::uint8_t special, float first_row) {
  const Operation& operation = built_in("scaled_gemm");
  const Problem problem =
      problem_of({{"scales", "mx"}, {"m", "2"}, {"n", "3"}, {"k", "64"}}).value();
  std::vector<HostTensor> inputs = ones(problem);
  inputs[operand].data[0] = std::byte{special};
  HostTensor c{operation.tensors(problem).back(), {}};
  c.data.resize(c.spec.bytes());
  for (std::size_t i = 0; i < 6; ++i) {
    store_element(DType::f32, c.data.data(), i, i < 3 ? first_row : 64);
  }
  return operation.reference(problem, inputs, 1)->check({c});
}

TEST(Microscaling, TheReferenceExpectsWhatScalesStandFor) {
  constexpr std::size_t a = 0, scales_a = 2;
  EXPECT_TRUE(verdict_of(scales_a, 127, 64).passed);
  EXPECT_TRUE(verdict_of(scales_a, 128, 96).passed);
  EXPECT_FALSE(verdict_of(scales_a, 128, 64).passed);
  EXPECT_TRUE(verdict_of(scales_a, 255, NAN).passed);
  EXPECT_FALSE(verdict_of(scales_a, 255, 64).passed);
  EXPECT_FALSE(verdict_of(scales_a, 127, NAN).passed);
  EXPECT_TRUE(verdict_of(scales_a, 0, 32).passed);
  EXPECT_FALSE(verdict_of(scales_a, 0, 64).passed);
  EXPECT_TRUE(verdict_of(a, 0x7f, NAN).passed);
  EXPECT_FALSE(verdict_of(a, 0x7f, 64).passed);
}

TEST(Microscaling, AdversarialInputsHaveSpecialNumbersAndScales) {
  const Operation& operation = built_in("scaled_gemm");
  const Problem problem = problem_of({{"format", "e2m1"},
                                      {"scales", "mx"},
                                      {"format_b", "e5m2"},
                                      {"m", "60"},
                                      {"n", "60"},
                                      {"k", "416"}})
                              .value();
  bool nan_scale = false, least_scale = false, infinite = false, largest = false;
  for (std::uint64_t seed = 1; seed < 24; ++seed) {
    const auto inputs = operation.inputs(problem, seed, InputStyle::adversarial);
    const auto any = [&](std::size_t operand, auto&& condition) {
      return std::any_of(inputs[operand].data.begin(), inputs[operand].data.end(),
                         [&](std::byte b) { return condition(std::to_integer<std::uint8_t>(b)); });
    };
    const auto is = [](std::uint8_t wanted) {
      return [wanted](std::uint8_t byte) { return byte == wanted; };
    };
    const bool finite = !any(
        1, [](std::uint8_t byte) { return !std::isfinite(decode_byte(ByteFormat::e5m2, byte)); });
    nan_scale = nan_scale || any(2, is(255)) || any(3, is(255));
    least_scale = least_scale || any(2, is(0));
    infinite = infinite || any(1, is(0x7c));
    largest = largest || any(0, is(0x77));
    EXPECT_TRUE(finite || !any(2, is(0))) << "devices may flush a scale: infinity times 0 is NaN";
  }
  EXPECT_TRUE(nan_scale);
  EXPECT_TRUE(least_scale);
  EXPECT_TRUE(infinite);
  EXPECT_TRUE(largest);
}

/// A product, and what `matrix` is planned for.
struct Case {
  const char* name;
  const char* device;
  const char* architecture;  ///< empty: the device's own
  const char* config;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

constexpr Case cases[] = {
    {"scaled_mfma", "hip-host:1", "gfx950", "matrix BM=64 BN=32 WM=32 WN=32 BUFFERS=2"},
    {"scaled_mfma_of_one_stage", "hip-host:1", "gfx950",
     "matrix BM=16 BN=64 WM=16 WN=16 BUFFERS=1"},
    {"mfma_of_halves", "hip-host:1", "gfx942", "matrix BM=64 BN=32 WM=32 WN=16 BUFFERS=1"},
    {"mma_of_halves", "hip-host:0", "sm_90", "matrix BM=32 BN=32 WM=16 WN=32 BUFFERS=2"},
    {"mma_of_bytes", "hip-host:0", "sm_89", "matrix BM=32 BN=64 WM=32 WN=32 BUFFERS=2"},
    {"wmma_of_halves", "hip-host:2", "", "matrix BM=32 BN=32 WM=16 WN=32 BUFFERS=2"},
    {"wmma_of_bytes", "hip-host:3", "", "matrix BM=64 BN=32 WM=16 WN=32 BUFFERS=1"},
    {"waves_that_share_k", "hip-host:0", "", "matrix_rows WAVES=2 TN=2 RT=2 UNROLL=2 SPLIT=1"},
    {"slices_of_waves", "hip-host:0", "sm_90", "matrix_rows WAVES=1 TN=1 RT=1 UNROLL=1 SPLIT=4"},
    {"slices_of_rows", "hip-host:0", "", "gemv THREADS=64 COLS=4 TN=2 ROWS=4 UNROLL=2 SPLIT=2"},
    {"tiles", "hip-host:2", "", "tiled BM=16 BN=32 BK=32 TM=4 TN=4 VEC=16"},
    {"tiles_of_words", "hip-host:1", "", "tiled BM=8 BN=64 BK=16 TM=2 TN=4 VEC=4"},
    {"shader_of_rows", "vulkan:0", "", "gemv THREADS=64 COLS=4 TN=1 ROWS=2 UNROLL=2 SPLIT=2"},
    {"shader_of_tiles", "vulkan:0", "", "tiled BM=16 BN=32 BK=32 TM=4 TN=2 VEC=16"},
    {"shader_of_tiles_of_words", "vulkan:0", "", "tiled BM=8 BN=32 BK=16 TM=2 TN=4 VEC=4"},
};

constexpr std::array<std::array<const char*, 2>, 6> formats{{{"e4m3", "same"},
                                                             {"e5m2", "same"},
                                                             {"e2m1", "same"},
                                                             {"e4m3", "e2m1"},
                                                             {"e2m1", "e5m2"},
                                                             {"e5m2", "e4m3"}}};

Problem problem_of(const std::array<const char*, 2>& of, const char* m) {
  return problem_of({{"format", of[0]},
                     {"scales", "mx"},
                     {"format_b", of[1]},
                     {"m", m},
                     {"n", "70"},
                     {"k", "416"}})
      .value();
}

class MicroscalingKernels : public ::testing::TestWithParam<Case> {
 protected:
  /// Returns the plan for the case's architecture, without options of its compiler.
  static LaunchPlan plan_of(const Problem& problem) {
    const Operation& operation = built_in(problem.op);
    DeviceInfo info = device(GetParam().device).info();
    if (*GetParam().architecture != '\0') {
      const DeviceInfo known = architecture_info(GetParam().architecture).value();
      info.architecture = known.architecture;
      info.shared_memory_bytes = known.shared_memory_bytes;
    }
    const auto config = operation.space(problem, info).parse(GetParam().config);
    EXPECT_TRUE(config) << config.failure().message;
    LaunchPlan plan = operation.plan(problem, info, *config).value();
    for (KernelSource& source : plan.sources) source.options.clear();
    return plan;
  }

  static HostTensor run(const Problem& problem, const std::vector<HostTensor>& inputs) {
    auto done = run_plan(device(GetParam().device), plan_of(problem),
                         built_in(problem.op).tensors(problem), inputs, 2)
                    .value();
    EXPECT_EQ(done.overrun, "");
    EXPECT_EQ(done.changed, "");
    return std::move(done.outputs.at(0));
  }
};

TEST_P(MicroscalingKernels, AreRightOfEveryPairOfFormats) {
  const Operation& operation = built_in("scaled_gemm");
  std::uint64_t seed = 0;
  for (const auto& of : formats) {
    const Problem problem = problem_of(of, "45");
    for (const InputStyle style : {InputStyle::plain, InputStyle::adversarial}) {
      const auto inputs = operation.inputs(problem, ++seed, style);
      const HostTensor c = run(problem, inputs);
      const Verdict verdict = operation.reference(problem, inputs, 1)->check({c});
      EXPECT_TRUE(verdict.passed) << problem.key() << ": " << verdict.detail;
    }
  }
}

/// Numbers of one block of each row and powers of two that differ from block to block and row to
/// row: sums are exact, so that a scale or number in a wrong place is found.
TEST_P(MicroscalingKernels, MultiplyEachNumberByItsScale) {
  for (const auto& of : formats) {
    const Problem problem = problem_of(of, "34");
    auto inputs = ones(problem);
    const std::int64_t m = 34, n = 70, blocks = 13;
    for (const std::size_t operand : {0, 1}) {
      HostTensor& numbers = inputs[operand];
      std::fill(numbers.data.begin(), numbers.data.end(), std::byte{0});
      for (std::int64_t i = 0; i < std::ssize(inputs[operand + 2].data); ++i) {
        const std::int64_t row = i / blocks, block = i % blocks;
        inputs[operand + 2].data[static_cast<std::size_t>(i)] =
            static_cast<std::byte>(123 + (row + block * (operand == 0 ? 1 : 3)) % 9);
      }
    }
    // k = 32 block + place: A has 1 there in all blocks, B alone in block (column % 13).
    const auto set = [&](std::size_t operand, std::int64_t row, std::int64_t k) {
      const ByteFormat format =
          kernels::byte_format_from_string(
              operand == 0 || of[1] == std::string_view("same") ? of[0] : of[1])
              .value();
      const int bits = kernels::traits(format).bits, of_byte = 8 / bits;
      inputs[operand].data[static_cast<std::size_t>((row * 416 + k) / of_byte)] |=
          std::byte{kernels::encode_byte(format, 1)} << k % of_byte * bits;
    };
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        set(0, row, block * 32 + (row * 5 + block) % 32);
      }
    }
    for (std::int64_t col = 0; col < n; ++col) {
      for (std::int64_t place = 0; place < 32; ++place) set(1, col, col % blocks * 32 + place);
    }
    const HostTensor c = run(problem, inputs);
    for (std::int64_t i = 0; i < m * n; ++i) {
      const std::int64_t row = i / n, col = i % n, block = col % blocks;
      const double want =
          kernels::e8m0_value(
              static_cast<int>(inputs[2].at(static_cast<std::size_t>(row * blocks + block)))) *
          kernels::e8m0_value(
              static_cast<int>(inputs[3].at(static_cast<std::size_t>(col * blocks + block))));
      ASSERT_EQ(c.at(static_cast<std::size_t>(i)), want)
          << problem.key() << ": row " << row << ", column " << col;
    }
  }
}

/// Rows of whole words of scales, and up to eight rows, which are half of a product.
TEST(MicroscalingRows, AreRightOfWholeUnitsAndFewRows) {
  const DeviceInfo sm_80 = device("hip-host:0").info();
  const Operation& operation = built_in("scaled_gemm");
  constexpr std::array<std::array<const char*, 2>, 4> extents{
      {{"1", "512"}, {"32", "1056"}, {"8", "1056"}, {"13", "512"}}};
  std::uint64_t seed = 0;
  for (const auto& of : formats) {
    for (const auto& [m, k] : {extents[seed % 4], extents[(seed + 1) % 4]}) {
      const Problem problem = problem_of({{"format", of[0]},
                                          {"scales", "mx"},
                                          {"format_b", of[1]},
                                          {"m", m},
                                          {"n", "70"},
                                          {"k", k}})
                                  .value();
      const Config config = operation.default_config(problem, sm_80);
      SCOPED_TRACE(problem.key() + " " + config.text());
      EXPECT_EQ(config.variant, "matrix_rows");
      expect_right(operation, problem, operation.plan(problem, sm_80, config), config.text(),
                   ++seed, device("hip-host:0"));
    }
  }
}

TEST(MicroscalingRows, AreTheDefaultOfUpTo32RowsOnNvidia) {
  const Operation& operation = built_in("scaled_gemm");
  const auto variant = [&](const char* architecture, const char* m, const char* format) {
    const Problem problem =
        problem_of({{"scales", "mx"}, {"format", format}, {"m", m}, {"n", "4096"}, {"k", "4096"}})
            .value();
    return operation.default_config(problem, architecture_info(architecture).value()).variant;
  };
  for (const char* format : {"e4m3", "e2m1"}) {
    for (const char* architecture : {"sm_80", "sm_89", "sm_90"}) {
      EXPECT_EQ(variant(architecture, "16", format), "matrix_rows") << architecture;
      EXPECT_EQ(variant(architecture, "32", format), "matrix_rows") << architecture;
      EXPECT_EQ(variant(architecture, "33", format), "matrix") << architecture;
    }
    EXPECT_EQ(variant("gfx942", "16", format), "matrix");
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, MicroscalingKernels, ::testing::ValuesIn(cases),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace greta::test::scaled_gemm_mx_test
