#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "runtime/pipeline/llama/network.hpp"
#include "runtime/pipeline/llama/options.hpp"
#include "runtime/pipeline/llama/sampler.hpp"
#include "runtime/pipeline/llama/token_history.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"

namespace greta::runtime {

/// Runs a Llama on a device: feeds tokens, stores their keys and values, and computes the logits of
/// the next tokens. The first pass of a size is recorded into a graph, which later passes replay.
/// Passes have 1, 16, 32, … tokens. Shorter inputs are padded at the end, where causal attention
/// ignores the padding. Belongs to the runtime's thread. Every method throws Error on failure;
/// after a device failure (`timeout`, `device_lost`) everything must be opened again.
class LlamaRunner {
 public:
  LlamaRunner(Runtime& runtime, LlamaDeviceWeights weights, const LlamaOptions& options);
  ~LlamaRunner();
  LlamaRunner(const LlamaRunner&) = delete;
  LlamaRunner& operator=(const LlamaRunner&) = delete;

  const LlamaConfig& config() const { return weights_.config; }
  DType dtype() const { return weights_.dtype; }
  std::int64_t batch() const { return options_.batch; }
  /// Returns the number of tokens fed so far, per sequence.
  std::int64_t position() const { return position_; }
  std::int64_t capacity() const { return memory_.capacity; }
  /// Returns the most tokens of a pass, per sequence.
  std::int64_t most_tokens() const { return options_.most_tokens; }

  /// Feeds the next tokens: [batch, n], row by row. Runs a single pass if n is 1. Throws Error for
  /// no tokens, tokens beyond the capacity, and ids outside of the vocabulary, and then feeds
  /// nothing.
  void feed(std::span<const std::int32_t> ids);
  /// Sets how tokens are drawn after the next feeds, with LlamaOptions::sample, without which it
  /// throws Error: by Operations::sample() with the seed and, as offset, the number of tokens fed.
  /// The upper word of a sequence's seed is that of `options` plus the sequence's number.
  /// Initially, the temperature is 0. Penalties need LlamaOptions::penalties; earlier tokens are
  /// all that were fed since reset().
  void sample(const SamplerOptions& options);
  /// Returns the lowest index of the largest logit of each sequence, or with LlamaOptions::sample
  /// the token that is drawn; -1 if no logit is above -inf. Valid after a feed.
  std::span<const std::int32_t> likeliest() const { return likeliest_; }
  /// Returns the largest logit of a sequence; NaN if all its logits are NaN.
  float largest_logit(std::int64_t sequence = 0) const;
  /// Returns the logits [batch, vocab], after penalties. Valid after a feed.
  std::vector<float> logits() const;
  /// Discards the sequences.
  void reset() { position_ = 0; }

  /// Feeds tokens of one sequence like feed(), with the same kernels, and returns every stage's
  /// result. The tokens must fit one pass: see passes().
  LlamaTrace trace(std::span<const std::int32_t> ids);
  /// Runs the attention of a layer of the pass that was traced last, with the same kernels, and
  /// with one-hot values.
  AttentionProbes probe_attention(const LlamaTrace& trace, std::int64_t layer);

  /// Creates the passes for a prompt of `prompt_tokens` tokens and for decoding, so that nothing is
  /// compiled later.
  void prepare(std::int64_t prompt_tokens);
  /// Returns the pass that feeds this number of tokens per sequence.
  const PipelineGraph& pass(std::int64_t tokens);
  /// Returns the sizes of the passes for a prompt of `count` tokens at the current position. Throws
  /// Error if the prompt does not fit after what was fed.
  std::vector<std::int64_t> passes(std::int64_t count) const;
  Queue& queue() { return *queue_; }
  /// Return the device memory of weights, caches and all passes in bytes.
  std::uint64_t weight_memory() const { return weight_bytes(weights_.config, weights_.dtype); }
  std::uint64_t cache_memory() const;
  std::uint64_t pass_memory() const;

 private:
  void check_ids(std::span<const std::int32_t> ids) const;
  void run_pass(const PipelineGraph& graph, std::span<const std::int32_t> ids, std::int64_t stride,
                const LlamaPassShape& shape, std::int64_t count);
  TraceMatrix cached(const Tensor& cache) const;

  Runtime& runtime_;
  LlamaOptions options_;
  LlamaDeviceWeights weights_;
  LlamaMemory memory_;
  std::unique_ptr<Queue> queue_;
  TokenHistory history_;
  std::map<std::int64_t, std::unique_ptr<PipelineGraph>> passes_;  ///< by number of tokens
  std::vector<std::int32_t> likeliest_;
  std::uint64_t seed_ = 0;
  std::int64_t position_ = 0;
  std::int64_t traced_tokens_ = 0;  ///< of the last traced pass
};

}  // namespace greta::runtime
