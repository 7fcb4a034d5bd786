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

namespace greta::runtime {

/// A Llama on a device: feeds tokens, keeps their keys and values, and gives the next ones' logits.
/// The first pass of a size is recorded into a graph; later ones replay it. Passes have 1, 16, 32,
/// … tokens: what a prompt has less is filled up behind its end, where nothing of it is seen.
/// Belongs to the runtime's thread. Every method throws Error for what can't be done; after a
/// failure of the device (`timeout`, `device_lost`) all must be opened again.
class LlamaRunner {
 public:
  LlamaRunner(Runtime& runtime, LlamaDeviceWeights weights, const LlamaOptions& options);
  ~LlamaRunner();
  LlamaRunner(const LlamaRunner&) = delete;
  LlamaRunner& operator=(const LlamaRunner&) = delete;

  const LlamaConfig& config() const { return weights_.config; }
  DType dtype() const { return weights_.dtype; }
  std::int64_t batch() const { return options_.batch; }
  std::int64_t position() const { return position_; }  ///< tokens fed so far, of each sequence
  std::int64_t capacity() const { return memory_.capacity; }

  /// Feeds the next tokens: [batch, n], row by row. At once where they are one for each sequence.
  /// Throws for no tokens, more than there is room for, and ids outside of the vocabulary; then
  /// nothing is fed.
  void feed(std::span<const std::int32_t> ids);
  /// After a feed: for each sequence the lowest index of the largest logit.
  std::span<const std::int32_t> likeliest() const { return likeliest_; }
  /// That logit. NaN where all of a sequence are: nothing is likely then.
  float largest_logit(std::int64_t sequence = 0) const;
  /// After a feed: [batch, vocab].
  std::vector<float> logits() const;
  /// Forgets the sequences.
  void reset() { position_ = 0; }

  /// Feeds tokens of one sequence as feed() does, by the same kernels, with every stage's result
  /// kept. They must be such as one pass takes: see passes().
  LlamaTrace trace(std::span<const std::int32_t> ids);

  /// Makes the passes that a prompt of some tokens and decoding need, so that nothing compiles
  /// later.
  void prepare(std::int64_t prompt_tokens);
  /// The pass that tokens of each sequence are fed by.
  const PipelineGraph& pass(std::int64_t tokens);
  /// Sizes of the passes that a prompt of `count` tokens takes, from the position on; there is room
  /// for it.
  std::vector<std::int64_t> passes(std::int64_t count) const;
  Queue& queue() { return *queue_; }
  /// Device memory of weights, caches and all passes.
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
  std::map<std::int64_t, std::unique_ptr<PipelineGraph>> passes_;  ///< by tokens
  std::vector<std::int32_t> likeliest_;
  std::int64_t position_ = 0;
};

}  // namespace greta::runtime
