#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/models/llama_config.hpp"

namespace greta::runtime {

struct LlamaOptions {
  std::int64_t batch = 1;     ///< sequences in lockstep, all of one length
  std::int64_t capacity = 0;  ///< tokens of a sequence, prompt included; 0: all that the model can
  std::int64_t most_tokens = 512;  ///< of one pass: longer prompts take several
  bool graph = true;               ///< false: operations are launched one by one, for comparison

  /// With everything filled in for a model. Throws Error for what it can't be.
  LlamaOptions for_model(const LlamaConfig& config) const;
};

/// A capacity for sequences of so many tokens: a power of two from 256 on, so that what was tuned
/// for one length serves others; at most what the model can.
std::int64_t llama_capacity(const LlamaConfig& config, std::int64_t tokens);
/// All that llama_capacity() gives for a model, ascending.
std::vector<std::int64_t> llama_capacities(const LlamaConfig& config);

/// Tokens of each sequence that passes take: 1, 16, 32, … and `most`, ascending.
std::vector<std::int64_t> llama_pass_sizes(std::int64_t most);
/// The passes that `count` tokens take: each of the size that leaves least to fill up, of which all
/// has room in what is left of a cache of `room` tokens. `count` is at most `room`.
std::vector<std::int64_t> llama_passes(std::int64_t count, std::int64_t room, std::int64_t most);

}  // namespace greta::runtime
