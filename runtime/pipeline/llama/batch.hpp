#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "runtime/pipeline/llama/batch_scheduler.hpp"
#include "runtime/pipeline/llama/device_weights.hpp"
#include "runtime/pipeline/llama/network.hpp"
#include "runtime/pipeline/llama/sampler.hpp"
#include "runtime/pipeline/llama/token_history.hpp"

namespace greta::runtime {

/// Returns the sizes of the memory of a batch, for options without missing values. There is one
/// page more than LlamaBatchOptions::pages, the last, which padding is written to.
LlamaMemorySizes batch_memory_sizes(const LlamaConfig& config, const LlamaBatchOptions& options);

/// Runs sequences of different lengths on a device. Prompts are fed and tokens decoded together,
/// and each sequence ends on its own, whereupon one that waits takes its place. Keys and values are
/// in pages, which sequences with the same beginning share; see BatchScheduler and PagePool. A
/// sequence's tokens are those of the same prompt alone, but for the rounding of sums, whose order
/// depends on the number of rows of a pass. Passes are recorded into graphs as LlamaRunner's are.
/// Belongs to the runtime's thread. Every method throws Error on failure; after a device failure
/// everything must be opened again.
class LlamaBatch {
 public:
  LlamaBatch(Runtime& runtime, LlamaDeviceWeights weights, const LlamaBatchOptions& options);
  ~LlamaBatch();
  LlamaBatch(const LlamaBatch&) = delete;
  LlamaBatch& operator=(const LlamaBatch&) = delete;

  const LlamaConfig& config() const { return weights_.config; }
  DType dtype() const { return weights_.dtype; }
  const LlamaBatchOptions& options() const { return options_; }

  /// Adds a sequence, and returns its number, from 0. Throws Error for what the model or the pages
  /// can't hold, and for ids outside of the vocabulary.
  std::size_t add(LlamaRequest request);
  /// Sets how tokens are drawn in later passes, with LlamaBatchOptions::sample, without which it
  /// throws Error. Each sequence has the seed of its request, and draws what LlamaRunner draws with
  /// this seed. Initially, the temperature is 0. Penalties need LlamaBatchOptions::penalties; a
  /// sequence's earlier tokens are its prompt and what was generated.
  void sample(const SamplerOptions& options);

  /// What a pass did.
  struct Step {
    BatchPass pass;
    std::vector<std::size_t> changed;  ///< sequences that got a token or ended, by their lanes
  };
  /// Runs the next pass. Returns nothing if all sequences have ended.
  std::optional<Step> step();

  const LlamaSequence& sequence(std::size_t number) const {
    return scheduler_.sequences().at(number);
  }
  const BatchScheduler& scheduler() const { return scheduler_; }
  /// Returns the largest logit of each lane of the last pass; NaN if all logits are NaN.
  std::vector<float> largest_logits() const;
  /// Ends and removes all sequences.
  void reset();

  /// Creates passes of these shapes, so that they are not compiled later.
  void prepare(const std::set<LlamaPassShape>& shapes);
  const PipelineGraph& pass(const LlamaPassShape& shape);
  /// Return the inputs of the last pass, of this shape, and set those of the next replay.
  std::vector<std::int32_t> inputs(const LlamaPassShape& shape) const;
  void set_inputs(std::span<const std::int32_t> inputs);
  Queue& queue() { return *queue_; }
  /// Return the device memory of weights, pages and all passes in bytes.
  std::uint64_t weight_memory() const { return weight_bytes(weights_.config, weights_.dtype); }
  std::uint64_t cache_memory() const;
  std::uint64_t pass_memory() const;

 private:
  void fill_lane(const LlamaInputs& staged, const LlamaPassShape& shape, std::int64_t lane,
                 const BatchLane* used);
  void remember(std::int64_t lane, const BatchLane& used);

  Runtime& runtime_;
  LlamaBatchOptions options_;
  LlamaDeviceWeights weights_;
  LlamaMemory memory_;
  std::unique_ptr<Queue> queue_;
  TokenHistory history_;
  BatchScheduler scheduler_;
  std::map<LlamaPassShape, std::unique_ptr<PipelineGraph>> passes_;
  std::vector<std::int32_t> likeliest_;  ///< of the last pass's lanes
};

/// Returns how often a batch runs a pass of each shape, if no sequence ends before it has all of
/// its tokens. Needs no device. Throws Error like BatchScheduler::add().
std::map<LlamaPassShape, std::int64_t> count_passes(const LlamaBatchOptions& options,
                                                    std::span<const LlamaRequest> requests);

}  // namespace greta::runtime
