#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/problem.hpp"
#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/llama/options.hpp"

namespace greta::runtime {

/// Bytes of device memory that a Llama takes.
struct LlamaNeeds {
  std::uint64_t weights = 0;
  std::uint64_t caches = 0;   ///< of keys and values
  std::uint64_t buffers = 0;  ///< what goes in and comes out: ids, positions, angles, logits
  std::uint64_t passes = 0;   ///< temporaries and kernels' workspace, of every pass its own
  std::int64_t capacity = 0;  ///< tokens that the caches hold
  std::int64_t runners = 1;   ///< that have caches, buffers and passes each; the weights are shared

  std::uint64_t total() const { return weights + each() * static_cast<std::uint64_t>(runners); }
  /// Of one runner.
  std::uint64_t each() const { return caches + buffers + passes; }
  /// Throws Error, `out_of_memory`, where that is more than a device has; with all sizes.
  void check(const DeviceInfo& device) const;
};

/// What it takes to feed a prompt of so many tokens to each sequence and to decode behind it.
/// Nothing is allocated or compiled. Of a model whose weights and caches alone are more than the
/// device has, that is all that is counted. Throws Error.
LlamaNeeds llama_needs(Runtime& runtime, const LlamaConfig& config, DType dtype,
                       const LlamaOptions& options, std::int64_t prompt_tokens,
                       std::int64_t runners = 1);

/// Every problem that feeding and decoding can ask for with these options, each once. Throws Error.
std::vector<Problem> llama_problems(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                    const LlamaOptions& options);

}  // namespace greta::runtime
