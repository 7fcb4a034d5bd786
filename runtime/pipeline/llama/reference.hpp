#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/pipeline/llama/stages.hpp"
#include "runtime/pipeline/llama/trace.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// A Llama in FP64 on the CPU, for one sequence: what devices' runs are compared with. Shares no
/// arithmetic with kernels or their references. Weights are read where they are mapped, so that it
/// takes little memory; it runs on all cores, some 10^9 multiplications a second.
class LlamaReference {
 public:
  /// `weights`: round all of them to this type first, as a device may keep them. The model must
  /// outlive it.
  explicit LlamaReference(const LlamaModel& model, std::optional<DType> weights = std::nullopt);

  /// Runs the next tokens, at positions position() …, against the keys and values of those before.
  /// Gives logits of the last token; `trace`, where there is one, gets every stage of all of them.
  /// Throws Error for ids outside of the vocabulary, no ids, and more than max_positions.
  std::vector<double> run(std::span<const std::int32_t> ids, LlamaTrace* trace = nullptr);

  std::int64_t position() const { return position_; }
  /// Forgets the sequence.
  void reset();

 private:
  struct Cache {
    std::vector<double> keys, values;  ///< [positions, kv_dim]
  };

  TraceMatrix embed(std::span<const std::int32_t> ids) const;
  LlamaLayerTrace layer(std::size_t index, const TraceMatrix& x);
  /// Of queries at position_ …
  TraceMatrix attend(const TraceMatrix& q, const Cache& cache) const;

  const LlamaModel& model_;
  stages::Weights weights_;
  std::vector<double> frequencies_;
  std::vector<Cache> caches_;  ///< of each layer
  std::int64_t position_ = 0;
};

}  // namespace greta::runtime
