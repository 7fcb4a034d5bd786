// Protects: every operation of the catalog on every device, with random small problems of each type
// and random valid configurations. Results are within their bounds and bit-identical when repeated
// or, on hip-host, when launches overlap, and nothing outside the operands is written.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/sampling/candidates.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/overlapped_run.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::property_test {
namespace {

/// Random problems of an operation on a device.
class RandomProblems {
 protected:
  RandomProblems(const std::string& operation, const std::string& device)
      : kernel_(built_in(operation)), device_(test::device(device)) {}

  /// Types alternate.
  void check_random_problems(std::size_t count, std::uint64_t seed) {
    const auto choices = random_candidates(kernel_, device_.info(), "", count, seed);
    EXPECT_EQ(choices.size(), count);
    for (const auto& [problem, drawn] : choices) {
      Config config = drawn;
      if (config.variant == vendor_variant) {  // hip-host's library has few algorithms of a product
        for (const char* choice : {"RANK", "SPLITK"}) {
          if (config.has(choice)) config.value(choice) = 0;
        }
      }
      check(problem, config, seed, seed % 2 == 0 ? InputStyle::plain : InputStyle::adversarial);
      ++seed;
    }
  }

  std::size_t types() const { return kernel_.dtypes.size(); }
  std::size_t input_types() const {
    std::set<DType> inputs;
    for (const DTypes& types : kernel_.dtypes) inputs.insert(types.in);
    return inputs.size();
  }
  bool is_hip_host() const { return device_.info().backend == Api::hip_host; }
  std::uint64_t own_seed() const { return 1 + static_cast<std::uint64_t>(device_.info().index); }

 private:
  void check(const Problem& problem, const Config& config, std::uint64_t seed, InputStyle style) {
    SCOPED_TRACE(problem.key() + " | " + config.text());
    const auto plan = kernel_.plan(problem, device_.info(), config);
    ASSERT_TRUE(plan) << plan.failure().message;
    const auto tensors = kernel_.tensors(problem);
    const auto inputs = kernel_.inputs(problem, seed, style);
    const auto run = test::run_plan(device_, *plan, tensors, inputs, 2);
    ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
    EXPECT_EQ(run->overrun, "");
    EXPECT_EQ(run->changed, "");
    const Verdict verdict = kernel_.reference(problem, inputs, seed)->check(run->outputs);
    EXPECT_TRUE(verdict.passed) << verdict.detail;
    if (is_hip_host()) check_overlapped(*plan, tensors, inputs, run->outputs);
  }

  void check_overlapped(const LaunchPlan& plan, const std::vector<TensorSpec>& tensors,
                        const std::vector<HostTensor>& inputs,
                        const std::vector<HostTensor>& outputs) {
    const auto runs = test::run_overlapped(device_, plan, tensors, inputs);
    ASSERT_TRUE(runs) << runs.failure().message;
    for (const std::vector<HostTensor>& run : *runs) {
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_TRUE(run[i].data == outputs[i].data) << outputs[i].spec.name << " of early launches";
      }
    }
  }

  const Operation& kernel_;
  Device& device_;
};

class Property : public RandomProblems,
                 public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  Property() : RandomProblems(std::get<0>(GetParam()), std::get<1>(GetParam())) {}
};

constexpr std::size_t parts = 10;

class LongProperty
    : public RandomProblems,
      public ::testing::TestWithParam<std::tuple<std::string, std::string, std::size_t>> {
 protected:
  LongProperty() : RandomProblems(std::get<0>(GetParam()), std::get<1>(GetParam())) {}
};

// The suite must not pass because there is no device to test.
TEST(Devices, OfTheCpuAreThere) {
  const auto ids = test::usable_devices();
  for (const char* id : {"hip-host:0", "hip-host:1", "hip-host:2", "hip-host:3", "hip-host:4"}) {
    EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 1) << id;
  }
  EXPECT_TRUE(std::any_of(ids.begin(), ids.end(), [](const std::string& id) {
    return id.starts_with("vulkan:") && test::device(id).info().is_cpu();
  })) << "lavapipe";
}

/// 2 problems of each pair of types. The five devices of hip-host, on which compiling a kernel
/// takes about a second, share 10.
TEST_P(Property, RandomProblemsAreRight) {
  check_random_problems(is_hip_host() ? 2 : 2 * types(), own_seed());
}

/// Further problems, for scripts/test.sh --all.
TEST_P(Property, MoreRandomProblemsAreRight) {
  check_random_problems(is_hip_host() ? 3 : 6 * types(), 100 + own_seed());
}

/// 2000 problems of each input type take hours, and 20 on each of hip-host's devices most of an
/// hour: ctest -L long, in independent parts.
TEST_P(LongProperty, ManyRandomProblemsAreRight) {
  const std::size_t part = std::get<2>(GetParam());
  check_random_problems((is_hip_host() ? 20 : 2000 * input_types()) / parts,
                        1000000 * own_seed() + 50000 * part);
}

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (const Operation& kernel : catalog()) names.push_back(kernel.name);
  return names;
}

template <class Parameters>
std::string name_of(const Parameters& of) {
  return std::get<0>(of) + "_" + test::device_name(std::get<1>(of));
}

INSTANTIATE_TEST_SUITE_P(Catalog, Property,
                         ::testing::Combine(::testing::ValuesIn(operations()),
                                            ::testing::ValuesIn(test::usable_devices())),
                         [](const auto& instance) { return name_of(instance.param); });

INSTANTIATE_TEST_SUITE_P(Catalog, LongProperty,
                         ::testing::Combine(::testing::ValuesIn(operations()),
                                            ::testing::ValuesIn(test::usable_devices()),
                                            ::testing::Range<std::size_t>(0, parts)),
                         [](const auto& instance) {
                           return name_of(instance.param) + "_part_" +
                                  std::to_string(std::get<2>(instance.param));
                         });

}  // namespace
}  // namespace greta::test::property_test
