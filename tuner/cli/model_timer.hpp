#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/pipeline/llama/runner.hpp"

namespace greta::tuner::cli {

/// What a model is asked for when it is timed.
struct ModelLoad {
  std::int64_t prompt_tokens = 512;
  std::int64_t generated_tokens = 128;
  std::int64_t batch = 1;

  /// Tokens that the cache must hold.
  std::int64_t tokens() const { return prompt_tokens + generated_tokens; }
};

/// Times of one way to run a model, µs. Wall times are from the call to the result on the host,
/// device times from the first operation's start to the last one's end.
struct ModelTimes {
  std::vector<double> prefill_us;         ///< wall, of whole prompts: the time to the first token
  std::vector<double> decode_us;          ///< wall, of a token
  std::vector<double> prefill_device_us;  ///< of the last pass of a prompt
  std::vector<double> decode_device_us;   ///< of a token
  std::vector<double> replay_host_us;  ///< until the host has handed a token's work to the device

  /// A prompt and what is generated behind it, by the medians.
  double load_us(const ModelLoad& load) const;
};

/// Runs prompts of random tokens and greedy decoding, again and again, and keeps the times.
class ModelTimer {
 public:
  /// Makes all passes. Throws Error.
  ModelTimer(Runtime& runtime, const LlamaDeviceWeights& weights, const LlamaOptions& options,
             const ModelLoad& load, std::uint64_t seed);

  /// Feeds a prompt from the start, or the likeliest tokens behind what was fed: what a pass then
  /// works on is of that kind.
  void feed_prompt();
  void feed_next();
  /// One prompt, and `steps` tokens behind it, at most as many as are generated. Throws Error.
  void round(std::int64_t steps);
  /// The same, without keeping any times so far.
  void warm_up(std::int64_t steps);
  /// A prompt and what is generated behind it, by the times of the last round.
  double last_load_us() const { return last_load_us_; }
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
  double last_load_us_ = 0;
};

}  // namespace greta::tuner::cli
