#include "tests/kernels/row_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"

namespace greta::test {

Problem row_problem(const Operation& entry, std::int64_t rows, std::int64_t cols, DTypes types,
                    Attributes attributes) {
  return {entry.name, types.in, types.out, std::move(attributes), {{"rows", rows}, {"cols", cols}}};
}

HostTensor tensor_of(const TensorSpec& spec, const Elements& element) {
  HostTensor tensor{spec, {}};
  tensor.spec.stride = 0;
  tensor.data.resize(tensor.spec.bytes());
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    for (std::int64_t col = 0; col < spec.cols; ++col) {
      store_element(spec.dtype, tensor.data.data(), static_cast<std::size_t>(row * spec.cols + col),
                    element(row, col));
    }
  }
  return placed(std::move(tensor), spec);
}

std::vector<HostTensor> inputs_of(const Operation& entry, const Problem& problem,
                                  const std::vector<std::pair<std::string, Elements>>& elements) {
  std::vector<HostTensor> inputs = entry.inputs(problem, 3);
  for (HostTensor& input : inputs) {
    for (const auto& [name, element] : elements) {
      if (input.spec.name == name) input = tensor_of(input.spec, element);
    }
  }
  return inputs;
}

std::vector<std::string> unlike_devices() {
  std::vector<std::string> ids = usable_devices();
  std::erase_if(
      ids, [](const std::string& id) { return id.starts_with("hip-host") && id != "hip-host:1"; });
  return ids;
}

std::vector<Config> one_of_each(const Operation& entry, const Problem& problem,
                                const DeviceInfo& device, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Config> configs{entry.default_config(problem, device)};
  const Space space = entry.space(problem, device);
  for (const Alternative& alternative : space.alternatives()) {
    const std::string& variant = alternative.variant;
    if (space.count(variant) > 0) configs.push_back(space.sample(variant, random));
  }
  return configs;
}

void expect_right_for(const Operation& entry, const Problem& problem,
                      const std::vector<HostTensor>& inputs, Device& device, std::uint64_t seed) {
  const auto tensors = entry.tensors(problem);
  const auto reference = entry.reference(problem, inputs, 1);
  for (const Config& config : one_of_each(entry, problem, device.info(), seed)) {
    SCOPED_TRACE(device.info().id() + " | " + problem.key() + " | " + config.text());
    const auto plan = entry.plan(problem, device.info(), config);
    ASSERT_TRUE(plan) << plan.failure().message;
    const auto run = run_plan(device, *plan, tensors, inputs);
    ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
    EXPECT_EQ(run->overrun, "");
    const Verdict verdict = reference->check(run->outputs);
    EXPECT_TRUE(verdict.passed) << verdict.detail;
  }
}

}  // namespace greta::test
