// Protects: a description becomes an operation whose kernels run, whose space is what the
// description says, and whose problems are refused where the description makes no sense of them.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "kernels/catalog.hpp"
#include "kernels/described/described_reference.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"

namespace greta::test::described_operation_test {
namespace {

std::string read_data(const std::string& name) {
  std::ifstream file(std::string(GRETA_TEST_DATA) + "/kernels/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<Operation> made(const std::string& from = "", const std::string& to = "") {
  std::string text = read_data("vector_add.jsonc");
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  const auto description = read_description(text);
  if (!description) return description.failure();
  const DescribedFiles files{{"vector_add.cu", read_data("vector_add.cu")},
                             {"b.bin", std::string(4000, '\0')}};
  return make_described(*description, files, {});
}

Problem problem_of(std::int64_t n) {
  Problem problem;
  problem.op = "vector_add";
  problem.dims = {{"n", n}};
  return problem;
}

TEST(DescribedOperation, HasTheSpaceOfItsDescription) {
  const auto operation = made();
  ASSERT_TRUE(operation) << operation.failure().message;
  DeviceInfo info = device("hip-host:0").info();
  info.max_workgroup_invocations = 256;
  const Space space = operation->space(problem_of(1000), info);
  // Of 6 blocks 4 fit, and without several items nothing is unrolled: 4 * 2 * (4 + 3).
  EXPECT_EQ(space.cartesian_size(), 6U * 4 * 2 * 2);
  EXPECT_EQ(space.count(), 4U * 2 * (4 + 3));
  EXPECT_EQ(space.rejects({"described", {{"BLOCK", 64}, {"ITEMS", 1}, {"MODE", 0}, {"UNROLL", 1}}}),
            "constraint_1: there is nothing to unroll");
  EXPECT_EQ(
      space.rejects({"described", {{"BLOCK", 512}, {"ITEMS", 1}, {"MODE", 0}, {"UNROLL", 0}}}),
      "workgroup_threads: a workgroup of vector_add has 1 to 256 threads");
  EXPECT_EQ(operation->default_config(problem_of(1000), info).text(),
            "described BLOCK=256 ITEMS=1 MODE=0 UNROLL=0");
  EXPECT_EQ(operation->work(problem_of(1000)).flops, 1000);
  EXPECT_EQ(operation->work(problem_of(1000)).bytes, 12000);
}

TEST(DescribedOperation, ItsKernelsRun) {
  const auto operation = made();
  ASSERT_TRUE(operation) << operation.failure().message;
  Device& on = device("hip-host:0");
  std::mt19937_64 random(5);
  for (const std::int64_t n : {1, 1000, 4099}) {
    const Problem problem = problem_of(n);
    const auto inputs = operation->inputs(problem, 3);
    const Space space = operation->space(problem, on.info());
    for (int i = 0; i < 4; ++i) {
      const Config config = space.sample(random);
      const auto plan = operation->plan(problem, on.info(), config);
      ASSERT_TRUE(plan) << plan.failure().message;
      const auto run = run_plan(on, *plan, operation->tensors(problem), inputs);
      ASSERT_TRUE(run) << run.failure().message << run.failure().log;
      EXPECT_EQ(run->overrun, "") << config.text();
      for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
        const auto sum = static_cast<float>(inputs[0].at(k) + inputs[1].at(k));
        ASSERT_EQ(run->outputs[0].at(k), sum) << config.text() << " at " << k;
      }
    }
  }
}

TEST(DescribedOperation, InputsAreFilledAsDescribed) {
  const auto operation = made();
  ASSERT_TRUE(operation) << operation.failure().message;
  const auto inputs = operation->inputs(problem_of(5000), 1);
  ASSERT_EQ(inputs.size(), 2U);
  double least = 0, most = 0;
  std::set<double> values;
  for (std::size_t i = 0; i < 5000; ++i) {
    least = std::min(least, inputs[1].at(i));
    most = std::max(most, inputs[1].at(i));
    values.insert(inputs[1].at(i));
  }
  EXPECT_LT(least, -1.9);
  EXPECT_GE(least, -2);
  EXPECT_GT(most, 1.9);
  EXPECT_LE(most, 2);
  EXPECT_GT(values.size(), 4900U);
  EXPECT_NE(operation->inputs(problem_of(5000), 2)[1].at(7), inputs[1].at(7));
}

/// Small problems are checked with values that uniform ones have rarely, within the range.
TEST(DescribedOperation, AdversarialInputsHaveTheEndsOfTheRange) {
  const auto operation = made();
  ASSERT_TRUE(operation) << operation.failure().message;
  const auto inputs = operation->inputs(problem_of(5000), 1, InputStyle::adversarial);
  std::map<double, int> counts;
  for (std::size_t i = 0; i < 5000; ++i) {
    const double value = inputs[1].at(i);
    EXPECT_TRUE(value >= -2 && value <= 2) << value;
    ++counts[value];
  }
  for (const double value : {-2.0, 0.0, 2.0}) EXPECT_GT(counts[value], 400) << value;
}

TEST(DescribedOperation, FilesHaveTheSizeOfTheirOperands) {
  const auto operation = made("{\"random\": [-2, 2]}", "{\"file\": \"b.bin\"}");
  ASSERT_TRUE(operation) << operation.failure().message;
  EXPECT_TRUE(operation->check(problem_of(1000)));
  const auto refused = operation->check(problem_of(1001));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().message,
            "the file b.bin has 4000 bytes of elements, and the operand b 4004");
  EXPECT_EQ(made("{\"random\": [-2, 2]}", "{\"file\": \"c.bin\"}").failure().message,
            "the file c.bin is missing");
}

TEST(DescribedOperation, ShapesMustBeExtents) {
  const auto operation = made("\"shape\": \"n\"", "\"shape\": [\"n - 10\", \"n\"]");
  ASSERT_TRUE(operation) << operation.failure().message;
  EXPECT_TRUE(operation->check(problem_of(11)));
  EXPECT_EQ(
      operation->check(problem_of(10)).failure().message,
      "line 21, column 61, operands[0].shape[0]: an extent of the operand a must be an integer "
      "above 0, and n - 10 is 0 with n=10");
  EXPECT_EQ(operation->check(problem_of(2'000'000'000)).failure().message,
            "line 21, column 61, operands[0].shape[0]: the operand a has more than 2^40 elements");
}

/// Results of other sources must be measured again.
TEST(DescribedOperation, ItsKeyIsOfItsSources) {
  const auto operation = made();
  ASSERT_TRUE(operation) << operation.failure().message;
  const auto description = read_description(read_data("vector_add.jsonc"));
  const auto other = make_described(*description, {{"vector_add.cu", "// another"}}, {});
  ASSERT_TRUE(other);
  EXPECT_NE(operation->key(), other->key());
  EXPECT_EQ(operation->key(), made()->key());
}

Result<Operation> verified(const std::string& kernel_from = "", const std::string& kernel_to = "",
                           const std::string& from = "", const std::string& to = "") {
  std::string text = read_data("vector_add.jsonc"), kernel = read_data("vector_add.cu");
  if (!kernel_from.empty()) kernel.replace(kernel.find(kernel_from), kernel_from.size(), kernel_to);
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  const auto description = read_description(text);
  if (!description) return description.failure();
  return make_verified(*description,
                       {{"vector_add.cu", kernel}, {"c.bin", std::string(4000, '\0')}},
                       [](SourceLanguage) -> Result<Device*> { return &device("hip-host:0"); });
}

Verdict verdict_of(const Operation& operation, std::int64_t n, const char* config) {
  const Problem problem = problem_of(n);
  Device& on = device("hip-host:0");
  const auto inputs = operation.inputs(problem, 9);
  const auto plan =
      operation.plan(problem, on.info(), operation.space(problem, on.info()).parse(config).value());
  const auto run = run_plan(on, plan.value(), operation.tensors(problem), inputs);
  return operation.reference(problem, inputs, 9)->check(run.value().outputs);
}

constexpr const char* blocked = "described BLOCK=64 ITEMS=4 MODE=1 UNROLL=1";

TEST(DescribedReference, ANaiveKernelTellsRightFromWrong) {
  const auto right = verified();
  ASSERT_TRUE(right) << right.failure().message;
  EXPECT_TRUE(verdict_of(*right, 1003, blocked).passed);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"c[at] = a[at] + b[at];", "c[at] = a[at] - b[at];"},
           {"c[at] = a[at] + b[at];", "c[at] = (a[at] + b[at]) * 1.0000002f;"},
           {"if (at < n) c", "if (at < n - 1) c"},
           {"i < ITEMS", "i < ITEMS - 1"}}) {
    const auto wrong = verified(from, to);
    ASSERT_TRUE(wrong) << wrong.failure().message;
    const Verdict verdict = verdict_of(*wrong, 1003, blocked);
    EXPECT_FALSE(verdict.passed) << to;
    EXPECT_NE(verdict.detail.find(", expected "), std::string::npos) << verdict.detail;
  }
}

TEST(DescribedReference, TolerancesAreKept) {
  const std::string off = "c[at] = (a[at] + b[at]) * 1.001f;", from = "c[at] = a[at] + b[at];";
  const auto strict = verified(from, off, "{\"ulp\": 0}", "{\"relative\": 0.0009}");
  const auto lenient = verified(from, off, "{\"ulp\": 0}", "{\"relative\": 0.0011}");
  const auto absolute = verified(from, off, "{\"ulp\": 0}", "{\"absolute\": 0.01}");
  const auto ulps = verified(from, off, "{\"ulp\": 0}", "{\"ulp\": 20000}");
  ASSERT_TRUE(strict && lenient && absolute && ulps);
  EXPECT_FALSE(verdict_of(*strict, 500, blocked).passed);
  EXPECT_TRUE(verdict_of(*lenient, 500, blocked).passed);
  EXPECT_TRUE(verdict_of(*absolute, 500, blocked).passed);
  EXPECT_TRUE(verdict_of(*ulps, 500, blocked).passed);
  EXPECT_GT(verdict_of(*lenient, 500, blocked).ratio(), 0.8);
}

TEST(DescribedReference, GoldenFilesHaveTheOutputs) {
  const std::string text = read_data("vector_add.jsonc");
  const std::string reference = text.substr(text.find("\"reference\""));
  const auto golden =
      verified("c[at] = a[at] + b[at];", "c[at] = a[at] - a[at] + b[at] - b[at];", reference,
               "\"reference\": {\"golden\": \"c.bin\", \"tolerance\": {\"ulp\": 0}}}");
  ASSERT_TRUE(golden) << golden.failure().message;
  EXPECT_TRUE(verdict_of(*golden, 1000, blocked).passed);
  EXPECT_THROW(verdict_of(*golden, 1001, blocked), Error);
}

TEST(DescribedReference, ADescriptionWithoutOneIsRefused) {
  const auto t1 = read_description(read_data("blur_t1.json"));
  ASSERT_TRUE(t1);
  const auto refused = make_verified(*t1, {{"blur.cu", ""}}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().message.substr(0, 58),
            "blur has no reference, so its results cannot be verified; ");
}

}  // namespace
}  // namespace greta::test::described_operation_test
