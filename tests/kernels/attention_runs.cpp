#include "tests/kernels/attention_runs.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test {

std::vector<HostTensor> run_attention(Device& device, const Problem& problem, const Config& config,
                                      const std::vector<HostTensor>& inputs) {
  const auto plan = built_in("attention").plan(problem, device.info(), config);
  EXPECT_TRUE(plan) << plan.failure().message;
  if (!plan) return {};
  const auto done = run_plan(device, *plan, built_in("attention").tensors(problem), inputs);
  EXPECT_TRUE(done) << done.failure().message << '\n' << done.failure().log;
  if (!done) return {};
  EXPECT_EQ(done->overrun, "");
  return done->outputs;
}

void spoil_invalid_keys(const Problem& problem, const std::vector<std::int64_t>& lengths,
                        std::vector<HostTensor>& inputs) {
  const auto kv = static_cast<std::size_t>(problem.dim("kv"));
  const auto kv_heads = static_cast<std::size_t>(problem.dim("kv_heads"));
  for (const std::size_t tensor : {1, 2}) {
    HostTensor& t = inputs[tensor];
    const std::size_t line = bytes_of(t.spec.dtype, static_cast<std::size_t>(t.spec.cols));
    for (std::size_t row = 0; row < static_cast<std::size_t>(t.spec.rows); ++row) {
      const std::size_t sequence = row / kv / kv_heads;
      if (sequence >= lengths.size()) continue;
      if (static_cast<std::int64_t>(row % kv) < lengths[sequence]) continue;
      std::memset(t.data.data() + row * line, 0xff, line);
    }
  }
}

void expect_right_attention(Device& device, const Problem& problem, const Config& config,
                            std::vector<std::int64_t> lengths, std::uint64_t seed) {
  SCOPED_TRACE(problem.key() + " | " + config.text());
  auto inputs = attention_inputs(problem, seed, lengths);
  spoil_invalid_keys(problem, lengths, inputs);
  const auto outputs = run_attention(device, problem, config, inputs);
  if (outputs.empty()) return;
  const Verdict verdict = built_in("attention").reference(problem, inputs, seed)->check(outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

}  // namespace greta::test
