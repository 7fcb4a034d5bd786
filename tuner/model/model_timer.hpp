#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/pipeline/llama/runner.hpp"
#include "tuner/model/load_timer.hpp"

namespace greta::tuner::model {

/// Times of one way to run a model, in µs. Wall times are from the call to the result on the host,
/// device times from the start of the first operation to the end of the last one.
struct ModelTimes {
  std::vector<double> prefill_us;         ///< wall time of whole prompts: time to first token
  std::vector<double> decode_us;          ///< wall time per token
  std::vector<double> prefill_device_us;  ///< last pass of a prompt
  std::vector<double> decode_device_us;   ///< per token
  std::vector<double> replay_host_us;     ///< until the host has submitted a token's work

  /// Returns the time of a prompt and the generated tokens, from the medians.
  double load_us(const ModelLoad& load) const;
};

/// Repeatedly runs prompts of random tokens and greedy decoding, and records the times.
class ModelTimer final : public LoadTimer {
 public:
  /// Builds all passes. Throws Error.
  ModelTimer(Runtime& runtime, const LlamaDeviceWeights& weights, const LlamaOptions& options,
             const ModelLoad& load, std::uint64_t seed);

  /// Feeds a prompt from the start, or the likeliest next tokens, so that a following pass has
  /// realistic inputs.
  void feed_prompt();
  void feed_next();
  /// Runs one prompt and `steps` further tokens, at most the load's generated tokens. Throws Error.
  void round(std::int64_t steps) override;
  void warm_up(std::int64_t steps) override;
  double round_seconds(std::int64_t steps) const override;
  std::vector<LoadPass> passes() const override;
  const PipelineGraph& pass(const LlamaPassShape& shape) override;
  const PipelineGraph& ready(const LoadPass& pass) override;
  Queue& queue() override { return runner_->queue(); }
  const ModelTimes& times() const { return times_; }
  LlamaRunner& runner() { return *runner_; }
  const std::vector<std::int32_t>& prompt() const { return prompt_; }

 private:
  double replay(std::int64_t tokens, bool host);

  Runtime& runtime_;
  ModelLoad load_;
  std::unique_ptr<LlamaRunner> runner_;
  std::unique_ptr<Event> start_, stop_;
  std::vector<std::int32_t> prompt_;
  ModelTimes times_;
};

}  // namespace greta::tuner::model
