#include "tests/kernels/attention_runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

void expect_right_attention(Device& device, const Problem& problem, const Config& config,
                            std::vector<std::int64_t> lengths, std::uint64_t seed) {
  SCOPED_TRACE(problem.key() + " | " + config.text());
  auto inputs = attention_inputs(problem, seed, lengths);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto length = static_cast<std::size_t>(std::max<std::int64_t>(0, lengths[b]));
    for (const std::size_t tensor : {1, 2}) {
      HostTensor& t = inputs[tensor];
      const std::size_t kv = static_cast<std::size_t>(problem.dim("kv"));
      const std::size_t dim = static_cast<std::size_t>(t.spec.cols);
      for (std::size_t row = 0; row < static_cast<std::size_t>(t.spec.rows); ++row) {
        const bool mine = row / kv / static_cast<std::size_t>(problem.dim("kv_heads")) == b;
        if (!mine || row % kv < length) continue;
        std::memset(t.data.data() + bytes_of(t.spec.dtype, row * dim), 0xff,
                    bytes_of(t.spec.dtype, dim));
      }
    }
  }
  const auto outputs = run_attention(device, problem, config, inputs);
  if (outputs.empty()) return;
  const Verdict verdict = built_in("attention").reference(problem, inputs, seed)->check(outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

}  // namespace greta::test
