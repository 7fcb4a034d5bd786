// Protects: a description becomes an operation whose kernels run, whose space is what the
// description says, and whose problems are refused where the description makes no sense of them.

#include "kernels/described/described_operation.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "kernels/catalog.hpp"
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
  EXPECT_EQ(operation->check(problem_of(10)).failure().message,
            "the operand a has the extent n - 10: 0, which must be an integer above 0");
  EXPECT_EQ(operation->check(problem_of(2'000'000'000)).failure().message,
            "the operand a has more than 2^40 elements");
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

}  // namespace
}  // namespace greta::test::described_operation_test
