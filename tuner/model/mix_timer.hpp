#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/pipeline/llama/batch.hpp"
#include "tuner/model/load_timer.hpp"

namespace greta::tuner::model {

/// Times of one way to serve a mix, in µs. All sequences are there from the beginning on.
struct MixTimes {
  std::vector<double> total_us;        ///< of a run, until the last sequence ends
  std::vector<double> prompt_us;       ///< of a run's passes that feed prompts
  std::vector<double> decode_us;       ///< of its other passes
  std::vector<double> first_token_us;  ///< of each sequence: from the beginning of the run
  std::vector<double> token_us;        ///< of each further token: since the one before
};

/// Serves a mix with a batch, from the first prompt to the last token.
class MixTimer {
 public:
  /// Builds all passes. Throws Error.
  MixTimer(Runtime& runtime, const LlamaDeviceWeights& weights, const LlamaBatchOptions& options,
           const BatchMix& mix, std::uint64_t seed);

  /// Serves the mix once, and records the times. Throws Error.
  void run();
  /// Forgets all times.
  void clear() { times_ = {}; }
  const MixTimes& times() const { return times_; }
  LlamaBatch& batch() { return *batch_; }
  /// Returns how often a run runs each pass.
  const std::map<LlamaPassShape, std::int64_t>& passes() const { return counts_; }
  /// Return the most pages in use in the last run, and tokens of prompts that were in pages of
  /// other sequences.
  std::int64_t most_pages() const { return most_pages_; }
  std::int64_t shared_tokens() const { return shared_tokens_; }

 private:
  std::vector<LlamaRequest> requests_;
  std::unique_ptr<LlamaBatch> batch_;
  std::map<LlamaPassShape, std::int64_t> counts_;
  MixTimes times_;
  std::int64_t most_pages_ = 0, shared_tokens_ = 0;
};

/// Times a mix by its passes: each of its distinct ones is replayed with the inputs of one that is
/// in the middle of the run, and counts as often as the run has it. A round takes as many passes as
/// there are distinct ones, however many sequences there are.
class MixPassTimer final : public LoadTimer {
 public:
  /// Builds all passes and serves the mix once. Throws Error.
  MixPassTimer(Runtime& runtime, const LlamaDeviceWeights& weights,
               const LlamaBatchOptions& options, const BatchMix& mix, std::uint64_t seed);

  void round(std::int64_t steps) override;
  void warm_up(std::int64_t steps) override { round(steps); }
  double round_seconds(std::int64_t steps) const override;
  std::vector<LoadPass> passes() const override;
  const PipelineGraph& pass(const LlamaPassShape& shape) override { return batch_.pass(shape); }
  const PipelineGraph& ready(const LoadPass& pass) override;
  Queue& queue() override { return batch_.queue(); }

 private:
  /// A pass that prompts and decoding may both have, of one token in each lane.
  struct Timed {
    LoadPass pass;
    std::vector<std::int32_t> inputs{};
    double us = 0;
  };

  void record(const std::vector<LlamaRequest>& requests);

  LlamaBatch batch_;
  std::vector<Timed> passes_;
};

}  // namespace greta::tuner::model
