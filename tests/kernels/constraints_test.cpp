// Protects: constraints are defined for all values of their parameters, of which each reads few
// enough that spaces are quick to count.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "kernels/model/problem_rules.hpp"
#include "kernels/sampling/random_problem.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/cooperative_gpu.hpp"

namespace greta::test::constraints_test {
namespace {

/// Returns one of each kind of Vulkan device and all HIP architectures.
std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> list{test::cooperative_gpu({}),
                               test::cooperative_gpu(test::nvidia_products),
                               test::cooperative_gpu(test::intel_products)};
  list.push_back(list.front());
  list.back().kind = DeviceKind::cpu;
  for (const std::string& name : known_architectures()) {
    list.push_back(architecture_info(name).value());
  }
  return list;
}

/// A space of verify or a search keeps the answers of a constraint with about as many. One of 53
/// million took 0.7 s for each space, and `verify gemm --variant tma` counts hundreds.
constexpr std::size_t most_combinations = std::size_t{1} << 21;

std::string asked;  ///< the constraint that is being evaluated

void tell(int) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, asked.data(), asked.size());
  _exit(1);
}

/// Evaluates every constraint for `draws` combinations of its parameters' values. Returns the
/// number of constraints.
std::size_t evaluate(const Alternative& alternative, int draws, std::mt19937_64& random) {
  for (const Constraint& constraint : alternative.constraints) {
    asked = alternative.variant + ": " + constraint.name + " divides by zero\n";
    Config config{alternative.variant, {}};
    std::vector<const std::vector<int>*> domains;  // of the parameters that it reads
    std::size_t combinations = 1;
    for (const Parameter& parameter : alternative.parameters) {
      const auto& read = constraint.condition.parameters();
      if (std::find(read.begin(), read.end(), parameter.name) == read.end()) continue;
      config.values.emplace_back(parameter.name, 0);
      domains.push_back(&parameter.values);
      combinations *= parameter.values.size();
    }
    EXPECT_LE(combinations, most_combinations) << alternative.variant << ": " << constraint.name;
    for (int draw = 0; draw < (domains.empty() ? 1 : draws); ++draw) {
      for (std::size_t i = 0; i < domains.size(); ++i) {
        config.values[i].second = (*domains[i])[random() % domains[i]->size()];
      }
      (void)constraint.condition.holds(config);
    }
  }
  return alternative.constraints.size();
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Operation& operation : catalog()) list.push_back(operation.name);
  return list;
}

class Constraints : public testing::TestWithParam<std::string> {};

// A constraint may be evaluated before others, and where others are violated (why_empty), so it
// must be defined for all values of its parameters, without a division by zero. On processors that
// don't trap a division by zero, such as AArch64, only sanitizers detect it.
TEST_P(Constraints, AreDefinedForAllOfTheirParametersValues) {
  const auto before = std::signal(SIGFPE, tell);
  std::size_t evaluated = 0;
  const Operation& entry = built_in(GetParam());
  std::mt19937_64 random(7);
  const WorkLimit any{1e15, 1e12};
  for (const DeviceInfo& device : devices()) {
    SCOPED_TRACE(device.name + " " + device.architecture);
    for (const DTypes& types : entry.dtypes) {
      Problem problem = random_problem(entry, types, {}, any, random);
      if (!check_problem(entry, problem)) continue;
      for (const Variant& variant : entry.variants) {
        evaluated += evaluate(variant.space(entry.shape(problem), device), 200, random);
      }
    }
  }
  std::signal(SIGFPE, before);
  EXPECT_GT(evaluated, 5 * devices().size());
}

INSTANTIATE_TEST_SUITE_P(Operations, Constraints, testing::ValuesIn(names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace greta::test::constraints_test
