// Protects: what parts of the keys give, joined by their log-sum-exps, is attention over all keys.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::attention_merge_test {
namespace {

/// Runs the default configuration; empty, with failed expectations, if it does not run.
std::vector<HostTensor> run_default(Device& device, const Problem& problem,
                                    const std::vector<HostTensor>& inputs) {
  const Operation& operation = built_in(problem.op);
  const Config config = operation.default_config(problem, device.info());
  const auto plan = operation.plan(problem, device.info(), config).value();
  const auto done = run_plan(device, plan, operation.tensors(problem), inputs);
  EXPECT_TRUE(done) << done.failure().message << '\n' << done.failure().log;
  if (!done) return {};
  EXPECT_EQ(done->overrun, "");
  return done->outputs;
}

/// Returns `part` of a tensor of K or V: keys `first` to first + keys of each head.
HostTensor keys_from(const HostTensor& all, const TensorSpec& part, std::int64_t capacity,
                     std::int64_t keys, std::int64_t first) {
  HostTensor some{part, std::vector<std::byte>(part.bytes())};
  const std::size_t line = bytes_of(part.dtype, static_cast<std::size_t>(part.cols));
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const std::int64_t from = row / keys * capacity + first + row % keys;
    std::memcpy(some.data.data() + static_cast<std::size_t>(row) * line,
                all.data.data() + static_cast<std::size_t>(from) * line, line);
  }
  return some;
}

class AttentionMerge : public ::testing::TestWithParam<std::string> {};

TEST_P(AttentionMerge, OfPartsOfTheKeysIsAttentionOverAll) {
  Device& device = test::device(GetParam());
  constexpr std::int64_t parts = 3, keys = 20, lengths[] = {60, 33, 0};
  const Problem whole = attention_problem({3, 4, 2, 5, parts * keys, 24});
  Problem part = attention_problem({3, 4, 2, 5, keys, 24});
  part.attributes.emplace_back("lse", "stored");
  const auto inputs = attention_inputs(whole, 1, {lengths[0], lengths[1], lengths[2]});
  const auto specs = built_in("attention").tensors(part);

  const Problem merge{"attention_merge",
                      DType::f32,
                      DType::f32,
                      {},
                      {{"parts", parts}, {"tokens", 3 * 5}, {"heads", 4}, {"dim", 24}}};
  std::vector<HostTensor> results;
  for (const TensorSpec& spec : built_in("attention_merge").tensors(merge)) {
    if (spec.role == Role::input) results.push_back({spec, {}});
  }
  for (std::int64_t p = 0; p < parts; ++p) {
    std::vector<HostTensor> own = inputs;
    for (const std::size_t i : {1, 2}) {
      own[i] = keys_from(inputs[i], specs[i], parts * keys, keys, p * keys);
    }
    for (std::size_t b = 0; b < std::size(lengths); ++b) {
      const auto left = std::clamp<std::int64_t>(lengths[b] - p * keys, 0, keys);
      store_element(DType::i32, own[3].data.data(), b, static_cast<double>(left));
    }
    const auto outputs = run_default(device, part, own);
    ASSERT_EQ(outputs.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      results[i].data.insert(results[i].data.end(), outputs[i].data.begin(), outputs[i].data.end());
    }
  }
  const auto merged = run_default(device, merge, results);
  ASSERT_EQ(merged.size(), 1U);
  const auto expected =
      built_in("attention").reference(whole, inputs, 1)->expected().value().front();
  ASSERT_EQ(merged.front().spec.elements(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // Both steps round.
    EXPECT_NEAR(merged.front().at(i), expected[i].value, 4 * expected[i].bound) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionMerge, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

}  // namespace
}  // namespace greta::test::attention_merge_test
