// Protects: a case contains what its kernels need and must write, survives writing and reading
// unchanged, is checked by the rules of its format, and runs on a device.

#include "tuner/compile/kernel_case.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>

#include "kernels/reference/findings.hpp"
#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/compile/case_files.hpp"
#include "tuner/compile/run_case.hpp"
#include "tuner/compile/target_compiler.hpp"

namespace greta::test::kernel_case_test {
namespace {

namespace fs = std::filesystem;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const Operation& gemm() {
  return built_in("gemm");
}

Problem small_problem() {
  return Problem::parse("gemm dtype=f32 out=f32 alpha=-0.5 beta=\"2\" m=9 n=13 k=7").value();
}

/// Two kernels that share a workspace after its counters, for any HIP compiler.
constexpr auto two_kernels = R"(
extern "C" __global__ void product(const float* a, const float* b, const float* bias, float* c,
                                   float* sums, unsigned* counters, unsigned m, unsigned n,
                                   unsigned k, float alpha) {
  const unsigned at = blockIdx.x * 64 + threadIdx.x;
  if (at >= m * n) return;
  float sum = 0;
  for (unsigned i = 0; i < k; ++i) sum += a[at / n * k + i] * b[i * n + at % n];
  sums[at] = bias == nullptr && counters[at % 64] == 0 ? alpha * sum : 0;
}
extern "C" __global__ void finish(const float* a, const float* b, const float* bias, float* c,
                                  float* sums, unsigned* counters, unsigned m, unsigned n,
                                  unsigned k, float beta) {
  const unsigned at = blockIdx.x * 64 + threadIdx.x;
  if (at < m * n) c[at] = sums[at] + beta * c[at];
}
)";

LaunchPlan two_launches(const std::string& text = two_kernels) {
  LaunchPlan plan;
  for (const char* entry : {"product", "finish"}) {
    KernelSource source;
    source.name = source.entry = entry;
    source.language = Language::hip;
    source.text = text;
    source.block = {64, 1, 1};
    source.argument_bytes = 6 * 8 + 4 * 4;
    plan.sources.push_back(source);
    plan.launches.push_back({plan.launches.size(),
                             {2, 1, 1},
                             {OperandArgument{0}, OperandArgument{1}, std::uint64_t{0},
                              OperandArgument{2}, WorkspaceArgument{256}, WorkspaceArgument{0}, 9U,
                              13U, 7U, plan.launches.empty() ? -0.5F : 2.0F}});
  }
  plan.zeroed_bytes = 256;
  plan.workspace_bytes = 256 + 9 * 13 * 4;
  return plan;
}

/// The plan with arbitrary bytes as code.
CompiledChoice not_compiled() {
  CompiledChoice compiled{{small_problem(), {"plain", {{"T", 64}}}}, "gfx942", two_launches(), {}};
  for (const char byte : {'p', 'f'}) {
    compiled.kernels.push_back({std::vector<std::byte>(3, std::byte(byte)), {}, {}});
  }
  return compiled;
}

TEST(KernelCase, HoldsOperandsWorkspaceAndArguments) {
  const KernelCase made = make_case(gemm(), not_compiled(), 1).value();
  EXPECT_EQ(made.problem, small_problem().key());
  EXPECT_EQ(made.config, "plain T=64");
  ASSERT_EQ(made.buffers.size(), 4U);
  const auto& [a, b, c, workspace] =
      std::tie(made.buffers[0], made.buffers[1], made.buffers[2], made.buffers[3]);
  EXPECT_TRUE(a.name == "A" && a.data.size() == 9 * 7 * 4 && a.expected.empty());
  EXPECT_TRUE(b.name == "B" && b.data.size() == 7 * 13 * 4 && b.data != a.data);
  EXPECT_TRUE(c.name == "C" && c.data.size() == 9 * 13 * 4 && c.expected.size() == 9 * 13);
  EXPECT_EQ(workspace.bytes, 256U + 9 * 13 * 4);
  EXPECT_EQ(workspace.data[255], std::byte{0});
  EXPECT_EQ(workspace.data[256], std::byte{0xFF});
  EXPECT_EQ(workspace.expected[63].bound, 0);
  EXPECT_EQ(workspace.expected[64].bound, infinity);
  ASSERT_EQ(made.launches.size(), 2U);
  const CaseLaunch& finish = made.launches[1];
  EXPECT_EQ(finish.kernel, "finish");
  EXPECT_EQ(finish.code_object, 1U);
  EXPECT_EQ(finish.grid, (Grid{2, 1, 1}));
  const std::vector<CaseArgument> arguments{CaseAddress{0, 0},
                                            CaseAddress{1, 0},
                                            std::uint64_t{0},
                                            CaseAddress{2, 0},
                                            CaseAddress{3, 256},
                                            CaseAddress{3, 0},
                                            9U,
                                            13U,
                                            7U,
                                            2.0F};
  EXPECT_EQ(finish.arguments, arguments);
}

TEST(KernelCase, OfAnOutputStartsAsNaNAndIsExpectedToBeTheProduct) {
  CompiledChoice compiled = not_compiled();
  compiled.choice.problem = Problem::parse("gemm dtype=f32 out=f32 m=1 n=1 k=1").value();
  const KernelCase made = make_case(gemm(), compiled, 1).value();
  EXPECT_TRUE(made.buffers[2].data.empty());
  EXPECT_EQ(made.buffers[2].fill, std::byte{0xFF});
  const auto first = [&](std::size_t i) {
    float value = 0;
    std::memcpy(&value, made.buffers[i].data.data(), sizeof value);
    return static_cast<double>(value);
  };
  EXPECT_DOUBLE_EQ(made.buffers[2].expected[0].value, first(0) * first(1));
  EXPECT_GT(made.buffers[2].expected[0].bound, 0);
}

TEST(KernelCase, ExpectsNanBetweenRowsThatAreNotPacked) {
  const Operation& softmax = built_in("softmax");
  CompiledChoice compiled = not_compiled();
  compiled.choice.problem = Problem::parse(
                                "softmax dtype=f32 out=f32 x_stride=\"5\" y_stride=\"4\" rows=2 "
                                "cols=3")
                                .value();
  const KernelCase made = make_case(softmax, compiled, 1).value();
  const auto &x = made.buffers[0], &y = made.buffers[1];
  ASSERT_TRUE(x.data.size() == 8 * 4 && y.bytes == 7 * 4 && y.expected.size() == 7);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(std::isnan(load_element(DType::f32, x.data.data(), i)), i == 3 || i == 4) << i;
  }
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(std::isnan(y.expected[i].value), i == 3) << i;
}

/// Bytes that no row has keep all bits, which is no NaN in a type of integers.
TEST(KernelCase, ExpectsUnwrittenIntegersBetweenRows) {
  CompiledChoice compiled = not_compiled();
  compiled.choice.problem =
      Problem::parse("quantize dtype=f32 out=u8 format=int8 q_stride=\"8\" rows=2 cols=4").value();
  const KernelCase made = make_case(built_in("quantize"), compiled, 1).value();
  const auto& expected = made.buffers.at(1).expected;
  ASSERT_EQ(expected.size(), 12U);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_TRUE(expected[i].value == 255) << i;
}

TEST(KernelCase, NeedsAReferenceOfEveryElement) {
  CompiledChoice compiled = not_compiled();
  compiled.choice.problem = Problem::parse("gemm dtype=f32 out=f32 m=8192 n=8192 k=1").value();
  const auto refused = make_case(gemm(), compiled, 1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("m=8192"), std::string::npos);
}

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CaseFiles, KeepACaseAsItIs) {
  const test::TemporaryFolder folder;
  write_case(make_case(gemm(), not_compiled(), 1).value(), folder / "first").value();
  KernelCase read = read_case(folder / "first").value();
  EXPECT_EQ(read.code_objects[1], std::vector<std::byte>(3, std::byte('f')));
  write_case(read, folder / "second").value();
  write_case(read, folder / "second").value();  // replaces the existing case
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "first")) {
    const auto name = entry.path().filename();
    EXPECT_EQ(contents(entry.path()), contents(folder / "second" / name)) << name;
    ++files;
  }
  EXPECT_EQ(files, 1 + 2 + 4 + 2 * 2) << "case.json, code, contents, expected and bounds";
}

TEST(CaseFiles, HaveTheSameCountersWithOtherOperands) {
  const test::TemporaryFolder folder;
  write_case(make_case(gemm(), not_compiled(), 1).value(), folder / "case").value();
  const KernelCase kept = read_case(folder / "case").value();
  KernelCase other = kept;
  fill_case(catalog(), other, 2).value();
  EXPECT_NE(other.buffers[0].data, kept.buffers[0].data);
  EXPECT_EQ(other.buffers[3].data, kept.buffers[3].data);
  EXPECT_EQ(other.buffers[3].expected.size(), kept.buffers[3].expected.size());
}

TEST(CaseFiles, KeepTheNumbersOfKernelsThatAreLaunchedInAnotherOrder) {
  const test::TemporaryFolder folder;
  KernelCase made = make_case(gemm(), not_compiled(), 1).value();
  std::swap(made.launches[0], made.launches[1]);
  write_case(made, folder / "case").value();
  const KernelCase read = read_case(folder / "case").value();
  EXPECT_EQ(read.code_objects, made.code_objects);
  EXPECT_EQ(read.launches[0].code_object, 1U);
  EXPECT_EQ(read.launches[1].code_object, 0U);
}

TEST(CaseFiles, AreWrittenOnlyWhereNothingElseIs) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "taken");
  std::ofstream(folder / "taken" / "notes.txt") << "mine";
  const KernelCase made = make_case(gemm(), not_compiled(), 1).value();
  const auto refused = write_case(made, folder / "taken");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().status, Status::invalid_argument);
  EXPECT_NE(refused.failure().message.find("taken"), std::string::npos);
  EXPECT_EQ(contents(folder / "taken" / "notes.txt"), "mine");
  EXPECT_EQ(write_case(made, "/proc/nowhere").failure().status, Status::io);
}

/// Returns the error of reading a case after replacing a text of case.json or removing a file.
std::string read_broken(const std::string& from, const std::string& to) {
  const test::TemporaryFolder folder;
  write_case(make_case(gemm(), not_compiled(), 1).value(), folder.path()).value();
  if (to == "removed") {
    fs::remove(folder / from);
  } else {
    std::string text = contents(folder / "case.json");
    const auto at = text.find(from);
    if (at == std::string::npos) return "no " + from;
    std::ofstream(folder / "case.json") << text.replace(at, from.size(), to);
  }
  const auto read = read_case(folder.path());
  if (read) return "was read";
  const std::string& message = read.failure().message;
  EXPECT_TRUE(message.starts_with(folder.path().string())) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(CaseFiles, SayWhatIsWrongWithThem) {
  const auto expect = [](const std::string& from, const std::string& to, const char* word) {
    const std::string message = read_broken(from, to);
    EXPECT_NE(message.find(word), std::string::npos) << from << ": " << message;
  };
  expect("case.json", "removed", "case.json: No such file");
  expect("kernel-1.co", "removed", "kernel-1.co: No such file");
  expect("\"schema\": 1", "\"schema\": 2", "schema 2");
  expect("\"schema\"", "schema", "case.json: is not JSON");
  expect("\"schema\": 1", "\"schema\": \"one\"",
         "case.json: \"schema\" has a value of the wrong kind");
  expect("\"grid\": [", "\"grid\": [\"x\", ", "case.json: \"grid\" has a value of the wrong kind");
  expect("\"args\": [", "\"args\": 7, \"more\": [",
         "case.json: \"args\" has a value of the wrong kind");
  expect("\"file\": \"A.bin\"", "\"file\": 7", "case.json: \"file\" has a value of the wrong kind");
  expect("\"dtype\": \"f32\"", "\"dtype\": \"f33\"", "f33");
  expect("\"dtype\": \"f32\"", "\"dtype\": \"f16\"", "C.expected.f64");
  expect("\"buffer\": \"A\"", "\"buffer\": \"D\"", "no buffer D");
  expect("\"offset\": 256", "\"offset\": 25600", "ends before byte 25600");
  expect("\"u32\": 9", "\"i7\": 9", "i7");
  expect("\"arch\"", "\"architecture\"", "case.json: \"arch\" is missing");
}

std::string judge(std::vector<float> values, std::vector<Expected> expected) {
  CaseBuffer buffer;
  buffer.name = "C";
  buffer.dtype = "f32";
  buffer.expected = std::move(expected);
  return check_buffer(buffer, std::as_bytes(std::span(values)));
}

TEST(CheckBuffer, KnowsBoundsAndWhatIsNotANumber) {
  constexpr auto f_nan = std::numeric_limits<float>::quiet_NaN();
  constexpr auto f_infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(judge({1.5F, 2}, {{1, 0.5}, {2, 0}}), "");
  EXPECT_EQ(judge({f_nan, f_infinity}, {{nan, 0}, {infinity, 0}}), "");
  EXPECT_NE(judge({f_nan}, {{1, infinity}}), "");
  EXPECT_NE(judge({1}, {{nan, 0}}), "");
  EXPECT_NE(judge({-f_infinity}, {{infinity, infinity}}), "");
  EXPECT_EQ(judge({1, 1.6F, 2.3F}, {{1, 0}, {1, 0.5}, {2, 0.1}}),
            "C: 2 of 3 outside the bound, worst at 2: 2.29999995, expected 2 +- 0.1");
}

/// Where a reference expects any number, cases must not be stricter than `verify` is.
TEST(CheckBuffer, AcceptsWhatTheReferenceDoes) {
  constexpr auto largest = std::numeric_limits<float>::max();
  const std::vector<Expected> all{
      {nan, infinity}, {largest, infinity}, {infinity, 0}, {1, 0.5}, {nan, 0}};
  for (const double got : {nan, infinity, -infinity, 0.0, 1.25, 2.0}) {
    for (const Expected& want : all) {
      kernels::Findings verify(1, 1);
      verify.compare(0, 0, got, want.value, want.bound);
      EXPECT_EQ(judge({static_cast<float>(got)}, {want}).empty(), verify.passed())
          << got << " for " << want.value << " +- " << want.bound;
    }
    EXPECT_EQ(judge({static_cast<float>(got)}, {{nan, infinity}}), "");
  }
}

TEST(CheckBuffer, ReadsEveryElementType) {
  const std::vector<std::uint32_t> bits{0x3f80c000, 0xffffffff};
  const auto passes = [&](const char* dtype, std::vector<Expected> expected) {
    CaseBuffer buffer;
    buffer.dtype = dtype;
    buffer.expected = std::move(expected);
    return check_buffer(buffer, std::as_bytes(std::span(bits))).empty();
  };
  EXPECT_TRUE(passes("f32", {{1.005859375, 0}, {nan, 0}}));
  EXPECT_TRUE(passes("f16", {{-2, 0}, {1.875, 0}, {nan, 0}, {nan, 0}}));
  EXPECT_TRUE(passes("bf16", {{-2, 0}, {1, 0}, {nan, 0}, {nan, 0}}));
  EXPECT_TRUE(passes("u32", {{1065402368, 0}, {4294967295, 0}}));
  EXPECT_TRUE(passes("i32", {{1065402368, 0}, {-1, 0}}));
  EXPECT_TRUE(passes("u8", {{0, 0}, {0xc0, 0}, {0x80, 0}, {0x3f, 0}, {255, 0}}));
  EXPECT_TRUE(passes("i8", {{0, 0}, {-64, 0}, {-128, 0}, {63, 0}, {-1, 0}}));
  EXPECT_TRUE(passes("f64", {{nan, 0}}));
}

// hip-host takes the place of a GPU: its code objects are loaded and launched in the same way.
class RunCase : public ::testing::Test {
 protected:
  static constexpr auto architecture = "host-gfx1100";

  RunCase() : device_(open_device(architecture, {}).value()) {}

  KernelCase compiled(const std::string& text = two_kernels) {
    const auto compiler = create_hip_target(architecture, {}).value();
    CompiledChoice plan;
    plan.choice = {small_problem(), {"plain", {}}};
    plan.architecture = architecture;
    plan.plan = two_launches(text);
    for (const auto& source : plan.plan.sources) {
      plan.kernels.push_back(compiler->compile(source).value());
    }
    return make_case(gemm(), plan, 1).value();
  }
  Result<std::string> run(const KernelCase& wanted) {
    return run_case(*device_, wanted, std::chrono::seconds(60));
  }

  std::unique_ptr<Device> device_;
};

TEST_F(RunCase, PassesAndFailsAsTheKernelsDo) {
  KernelCase right = compiled();
  EXPECT_EQ(run(right).value(), "");
  right.buffers[2].expected[40].value += 0.01;
  EXPECT_NE(run(right).value().find("C: 1 of 117 outside the bound, worst at 40"),
            std::string::npos);
  std::string overrun = two_kernels;
  const std::string from = "if (at < m * n) c[at]";
  overrun.replace(overrun.find(from), from.size(), "c[at]");
  const KernelCase wrong = compiled(overrun);
  if (device_->info().watches_bounds) {  // the sanitizer ends the process
    EXPECT_DEATH(static_cast<void>(run(wrong)), "heap-buffer-overflow");
  } else {
    EXPECT_NE(run(wrong).value().find("past the end of C"), std::string::npos);
  }
}

TEST_F(RunCase, CountersMustBeLeftAsTheyWere) {
  std::string text = two_kernels;
  const std::string from = "if (at < m * n) c[at]";
  text.replace(text.find(from), from.size(), "counters[0] = 7; " + from);
  EXPECT_NE(run(compiled(text)).value().find("workspace: 1 of"), std::string::npos);
}

TEST_F(RunCase, RefusesOtherArchitecturesAndMissingKernels) {
  KernelCase wrong = compiled();
  wrong.launches[1].kernel = "absent";
  const auto missing = run(wrong);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.failure().message.find("absent"), std::string::npos);
  wrong.architecture = "gfx1100";
  const auto other = run(wrong);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.failure().status, Status::invalid_argument);
  EXPECT_NE(other.failure().message.find("compiled for gfx1100"), std::string::npos);
}

TEST_F(RunCase, RunsWhatATemplatePlans) {
  const auto compiler = create_hip_target(architecture, {}).value();
  const auto choices = random_candidates(gemm(), compiler->target(), "split_k", 2, 4);
  for (const auto& [choice, plan, predicted] : compile_plans(*compiler, gemm(), choices)) {
    ASSERT_TRUE(plan) << plan.failure().message << plan.failure().log;
    EXPECT_EQ(run(make_case(gemm(), *plan, 1).value()).value(), "") << choice.config.text();
  }
}

}  // namespace
}  // namespace greta::test::kernel_case_test
