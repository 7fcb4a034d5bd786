#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/llama/network.hpp"
#include "runtime/pipeline/llama/packing.hpp"
#include "tuner/model/batch_mix.hpp"

namespace greta::tuner::model {

/// The load for which a model is timed.
struct ModelLoad {
  std::int64_t prompt_tokens = 512;
  std::int64_t generated_tokens = 128;
  /// Sequences, all of these lengths; of a mix, those that are decoded at the same time.
  std::int64_t batch = 1;
  std::optional<BatchMix> mix{};  ///< sequences of different lengths in place of these
  std::int64_t page = 64;         ///< tokens of a page of a mix's caches
  std::int64_t pages = 0;         ///< of all sequences; 0: each has room for the longest one

  /// Returns the number of tokens that the cache of a sequence must hold.
  std::int64_t tokens() const { return mix ? mix->longest() : prompt_tokens + generated_tokens; }
};

/// Return the options of a runner for a load of one length, and of a batch that serves its mix,
/// with a capacity of llama_capacity(). Throws Error.
LlamaOptions runner_options(const ModelLoad& load, const LlamaConfig& config);
LlamaBatchOptions batch_options(const ModelLoad& load, const LlamaConfig& config);
/// Returns the memory of a model with this number of runners or batches for a load. `seed` is that
/// of the mix. Throws Error.
LlamaNeeds load_needs(Runtime& runtime, const LlamaConfig& config, DType dtype,
                      const ModelLoad& load, std::uint64_t seed, std::int64_t runners);

/// Returns the passes of a load, as those that its products count in. `seed` is that of the mix.
std::vector<CountedPass> load_passes(const ModelLoad& load, const LlamaConfig& config,
                                     std::uint64_t seed);

/// The part of a load in which something runs.
enum class ModelPhase { load, prompt, decode };
std::string_view to_string(ModelPhase phase);  ///< "load", "prompt" or "decode"

/// A pass of a load.
struct LoadPass {
  LlamaPassShape shape;
  ModelPhase phase = ModelPhase::decode;
  double times = 1;  ///< how often the load runs it
};

/// Runs a load, and records what it takes in µs, as the host sees it.
class LoadTimer {
 public:
  LoadTimer() = default;
  virtual ~LoadTimer() = default;
  LoadTimer(const LoadTimer&) = delete;
  LoadTimer& operator=(const LoadTimer&) = delete;

  /// Times a part of the load that stands for all of it: of one length, a prompt and `steps`
  /// tokens. Throws Error.
  virtual void round(std::int64_t steps) = 0;
  /// Runs a round without recording any times.
  virtual void warm_up(std::int64_t steps) = 0;
  /// Returns about how long a round takes.
  virtual double round_seconds(std::int64_t steps) const = 0;
  /// Return the time of the whole load, of its prompts, and the mean or median time of a pass that
  /// decodes, from the last round.
  double last_load_us() const { return last_load_us_; }
  double last_prompt_us() const { return last_prompt_us_; }
  double last_token_us() const { return last_token_us_; }

  /// Returns the load's passes, each once for a phase.
  virtual std::vector<LoadPass> passes() const = 0;
  virtual const PipelineGraph& pass(const LlamaPassShape& shape) = 0;
  /// Returns a pass after giving it the inputs of the load, so that it can be timed.
  virtual const PipelineGraph& ready(const LoadPass& pass) = 0;
  virtual Queue& queue() = 0;

 protected:
  double last_load_us_ = 0, last_prompt_us_ = 0, last_token_us_ = 0;
};

}  // namespace greta::tuner::model
