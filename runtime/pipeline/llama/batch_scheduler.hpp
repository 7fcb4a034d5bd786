#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/pipeline/llama/network.hpp"
#include "runtime/pipeline/llama/page_pool.hpp"
#include "runtime/pipeline/models/llama_config.hpp"

namespace greta::runtime {

/// A batch of sequences of different lengths, whose caches are pages.
struct LlamaBatchOptions {
  std::int64_t sequences = 8;    ///< that are decoded at the same time
  std::int64_t capacity = 0;     ///< tokens of the longest sequence; 0: the model's maximum
  std::int64_t page = 64;        ///< tokens of a page: 16, 32, 64, 128 or 256
  std::int64_t pages = 0;        ///< of all sequences; 0: each has room for its capacity
  std::int64_t most_rows = 512;  ///< tokens of a pass that feeds prompts
  bool sample = false;           ///< whether passes draw tokens, by LlamaBatch::sample()
  bool penalties = false;        ///< with `sample`: whether earlier tokens can be penalised
  bool graph = true;             ///< false: operations are launched one by one

  /// Returns the options with defaults filled in for a model. Throws Error for invalid values.
  LlamaBatchOptions for_model(const LlamaConfig& config) const;
  /// Returns the number of pages of the longest sequence.
  std::int64_t pages_of_sequence() const { return (capacity + page - 1) / page; }
};

/// Returns the numbers of tokens that a lane of a pass can have, in ascending order.
std::vector<std::int64_t> llama_lane_tokens(const LlamaBatchOptions& options);
/// Returns the numbers of lanes that a pass with this number of tokens in each can have: powers of
/// two, and the largest.
std::vector<std::int64_t> llama_lane_counts(const LlamaBatchOptions& options, std::int64_t tokens);
/// Returns the shapes of all passes.
std::vector<LlamaPassShape> llama_batch_shapes(const LlamaBatchOptions& options);

/// A prompt, and what is generated after it.
struct LlamaRequest {
  std::vector<std::int32_t> prompt;
  std::int64_t tokens = 128;         ///< most that are generated
  std::vector<std::int32_t> ends{};  ///< tokens that end the sequence, and are not part of it
  std::uint64_t seed = 0;            ///< of sampling
};

/// Why a sequence ended.
enum class SequenceEnd {
  none,      ///< it has not ended
  end,       ///< one of LlamaRequest::ends
  tokens,    ///< LlamaRequest::tokens
  capacity,  ///< its cache is full
};

struct LlamaSequence {
  LlamaRequest request;
  std::vector<std::int32_t> generated{};
  SequenceEnd end = SequenceEnd::none;
  std::int64_t fed = 0;     ///< tokens in the cache, or in passes before the next one
  std::int64_t shared = 0;  ///< tokens of the prompt that were in pages of other sequences
  PageLease lease{};        ///< empty: it waits, or has ended
  bool admitted = false;    ///< whether it has pages, or had them

  std::int64_t prompt_size() const { return static_cast<std::int64_t>(request.prompt.size()); }
  /// Returns token i of the prompt and what follows it.
  std::int32_t token(std::int64_t i) const;
};

/// Some of a sequence's tokens, which are a sequence of their own for a pass's operations.
struct BatchLane {
  std::size_t sequence = 0;
  std::int64_t first = 0, count = 1;  ///< tokens; the rest of the lane is padding
  bool gives_token = true;            ///< whether the next token follows from the last one
};

/// A pass through the network.
struct BatchPass {
  LlamaPassShape shape;
  std::vector<BatchLane> lanes;  ///< at most shape.batch; the others are not used
  bool prompt = false;           ///< whether it feeds prompts
};

/// Decides which tokens of which sequences each pass feeds. A sequence begins when pages for all of
/// its tokens are free, in the order of add(). Prompts are fed before anything is decoded: tokens
/// of all prompts are packed into lanes of 16, 64 or 256, which have the least padding, and at the
/// end of a cache into lanes of one. Has no device.
class BatchScheduler {
 public:
  explicit BatchScheduler(const LlamaBatchOptions& options);

  /// Adds a sequence, and returns its number. Throws Error for an empty prompt and one that the
  /// capacity or all pages do not hold.
  std::size_t add(LlamaRequest request);
  /// Returns the next pass; nothing if all sequences have ended. The pass must be finished before
  /// the next one.
  std::optional<BatchPass> next();
  /// Takes the next token of each lane, of which those of lanes without gives_token do not count.
  /// Returns the numbers of the sequences that got a token or ended. Throws Error for a token below
  /// 0, which is that of logits of which none is largest.
  std::vector<std::size_t> finish(const BatchPass& pass, std::span<const std::int32_t> tokens);

  const std::vector<LlamaSequence>& sequences() const { return sequences_; }
  const PagePool& pool() const { return pool_; }
  /// Returns the most pages that were in use at the same time.
  std::int64_t most_pages() const { return most_pages_; }

 private:
  void admit();
  std::vector<BatchLane> prompt_lanes(std::int64_t tokens) const;
  BatchPass prompt_pass() const;
  void end(LlamaSequence& sequence, SequenceEnd why);

  LlamaBatchOptions options_;
  PagePool pool_;
  std::vector<LlamaSequence> sequences_;
  std::deque<std::size_t> waiting_;   ///< in the order of add()
  std::vector<std::size_t> running_;  ///< in the same order
  std::int64_t most_pages_ = 0;
};

}  // namespace greta::runtime
