#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/models/llama_config.hpp"

namespace greta::runtime {

struct LlamaOptions {
  std::int64_t batch = 1;          ///< number of sequences, all of the same length
  std::int64_t capacity = 0;       ///< tokens per sequence, prompt included; 0: the model's maximum
  std::int64_t most_tokens = 512;  ///< per pass; longer prompts take several passes
  bool sample = false;             ///< whether passes draw tokens, by LlamaRunner::sample()
  bool penalties = false;          ///< with `sample`: whether earlier tokens can be penalised
  bool graph = true;               ///< false: operations are launched one by one, for comparison

  /// Returns the options with defaults filled in for a model. Throws Error for invalid values.
  LlamaOptions for_model(const LlamaConfig& config) const;
};

/// Returns a capacity for sequences of `tokens` tokens: a power of two of at least 256, so that
/// tuning results apply to many lengths, and at most the model's maximum.
std::int64_t llama_capacity(const LlamaConfig& config, std::int64_t tokens);
/// Returns all values of llama_capacity() for a model in ascending order.
std::vector<std::int64_t> llama_capacities(const LlamaConfig& config);

/// Returns the numbers of tokens per sequence in a pass: 1, 16, 32, … and `most`, in ascending
/// order.
std::vector<std::int64_t> llama_pass_sizes(std::int64_t most);
/// Returns the passes for `count` tokens, each of the size with the least padding that fits into
/// the remaining cache. The cache has room for `room` tokens. Throws Error if `count` is more.
std::vector<std::int64_t> llama_passes(std::int64_t count, std::int64_t room, std::int64_t most);

}  // namespace greta::runtime
