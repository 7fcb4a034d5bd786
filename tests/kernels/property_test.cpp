// Every operation of the catalog on every device: random small problems of each type with random
// valid configurations. Results are within their bound and, run again, the same bit for bit;
// nothing outside of the operands is written.

#include <gtest/gtest.h>

#include "kernels/catalog.hpp"
#include "kernels/choices.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta {
namespace {

class Property : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  /// Types take turns.
  void check_random_problems(std::size_t count, std::uint64_t seed) {
    const auto choices = random_choices(kernel_, device_.info(), "", count, seed);
    EXPECT_EQ(choices.size(), count);
    for (const auto& [problem, config] : choices) check(problem, config, seed++);
  }

  std::size_t types() const { return kernel_.dtypes.size(); }
  bool is_hip_host() const { return device_.info().backend == "hip-host"; }
  std::uint64_t own_seed() const { return 1 + static_cast<std::uint64_t>(device_.info().index); }

 private:
  void check(const Problem& problem, const Config& config, std::uint64_t seed) {
    SCOPED_TRACE(problem.key() + " | " + config.text());
    const auto plan = kernel_.plan(problem, device_.info(), config);
    ASSERT_TRUE(plan) << plan.failure().message;
    const auto tensors = kernel_.tensors(problem);
    const auto inputs = kernel_.inputs(problem, seed);
    const auto run = test::run_plan(device_, *plan, tensors, inputs, 2);
    ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
    EXPECT_EQ(run->overrun, "");
    EXPECT_EQ(run->changed, "");
    const Verdict verdict = kernel_.reference(problem, inputs, seed)->check(run->outputs);
    EXPECT_TRUE(verdict.passed) << verdict.detail;
  }

  const KernelTemplate& kernel_ = *find_template(std::get<0>(GetParam()));
  Device& device_ = test::device(std::get<1>(GetParam()));
};

/// 20 problems of each pair of types. On hip-host, where each kernel takes a C++ compiler's second,
/// its four devices share 20.
TEST_P(Property, RandomProblemsAreRight) {
  check_random_problems(is_hip_host() ? 5 : 20 * types(), own_seed());
}

/// The same with 2000 of each takes hours, and with 20 on each of hip-host's devices most of one:
/// ctest -L long.
TEST_P(Property, ManyRandomProblemsAreRight) {
  check_random_problems(is_hip_host() ? 20 : 2000 * types(), 1000 * own_seed());
}

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (const KernelTemplate* kernel : catalog()) names.push_back(kernel->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalog, Property,
                         ::testing::Combine(::testing::ValuesIn(operations()),
                                            ::testing::ValuesIn(test::usable_devices())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  test::device_name(std::get<1>(instance.param));
                         });

}  // namespace
}  // namespace greta
