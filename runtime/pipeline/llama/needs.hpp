#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "kernels/model/problem.hpp"
#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/llama/batch.hpp"
#include "runtime/pipeline/llama/options.hpp"

namespace greta::runtime {

/// Sizes of the device memory of a Llama in bytes.
struct LlamaNeeds {
  std::uint64_t weights = 0;
  std::uint64_t caches = 0;   ///< of keys and values
  std::uint64_t buffers = 0;  ///< inputs and outputs: ids, positions, angles, logits
  std::uint64_t passes = 0;   ///< temporaries and workspaces of all passes
  /// A second copy of a matrix while weights are loaded, before the others are allocated.
  std::uint64_t repacking = 0;
  std::int64_t capacity = 0;  ///< number of tokens that the caches hold
  std::int64_t runners = 1;   ///< each has caches, buffers and passes; they share the weights

  std::uint64_t total() const {
    return weights + std::max(repacking, each() * static_cast<std::uint64_t>(runners));
  }
  /// Returns the memory of one runner.
  std::uint64_t each() const { return caches + buffers + passes; }
  /// Throws Error (`out_of_memory`) with all sizes if the total exceeds the device's memory.
  void check(const DeviceInfo& device) const;
};

/// Computes the memory to feed a prompt of `prompt_tokens` tokens to each sequence and to decode
/// after it. Allocates and compiles nothing. If weights and caches alone exceed the device's
/// memory, only these are counted. Throws Error.
LlamaNeeds llama_needs(Runtime& runtime, const LlamaConfig& config, DType dtype,
                       const LlamaOptions& options, std::int64_t prompt_tokens,
                       std::int64_t runners = 1);

/// Computes the memory of a batch of sequences with caches in pages, whose passes have these
/// shapes. Allocates and compiles nothing, as above. Throws Error.
LlamaNeeds llama_needs(Runtime& runtime, const LlamaConfig& config, DType dtype,
                       const LlamaBatchOptions& options, const std::set<LlamaPassShape>& shapes,
                       std::int64_t runners = 1);

/// Returns the distinct problems of feeding and decoding with these options. Throws Error.
std::vector<Problem> llama_problems(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                    const LlamaOptions& options);

/// Returns the operations of the pass that feeds `tokens` tokens to each sequence, in order. Throws
/// Error.
std::vector<RecordedProblem> llama_operations(Runtime& runtime, const LlamaConfig& config,
                                              DType dtype, const LlamaOptions& options,
                                              std::int64_t tokens);

/// Returns the alternatives that are recorded for the chains of that pass (docs/fusion.md). Throws
/// Error.
std::vector<ChosenChain> llama_chains(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                      const LlamaOptions& options, std::int64_t tokens);

}  // namespace greta::runtime
