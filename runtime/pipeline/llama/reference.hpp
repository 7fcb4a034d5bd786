#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/pipeline/llama/stages.hpp"
#include "runtime/pipeline/llama/trace.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// An FP64 implementation of a Llama on the CPU for one sequence: the reference for runs on
/// devices. Shares no arithmetic with kernels or their references. Reads weights from the mapped
/// files, so it uses little memory. Runs on all cores at some 10^9 multiplications per second.
class LlamaReference {
 public:
  /// If `weights` is set, rounds all weights to this type first, as a device may store them. The
  /// model must outlive the object.
  explicit LlamaReference(const LlamaModel& model, std::optional<DType> weights = std::nullopt);

  /// Runs the next tokens, at positions from position() on, and returns the logits of the last
  /// token. If `trace` is set, it receives every stage of all tokens. Throws Error for invalid ids,
  /// no ids, and more than max_positions tokens.
  std::vector<double> run(std::span<const std::int32_t> ids, LlamaTrace* trace = nullptr);

  std::int64_t position() const { return position_; }
  /// Discards the sequence.
  void reset();

 private:
  struct Cache {
    std::vector<double> keys, values;  ///< [positions, kv_dim]
  };

  TraceMatrix embed(std::span<const std::int32_t> ids) const;
  LlamaLayerTrace layer(std::size_t index, const TraceMatrix& x);
  static TraceMatrix gated(const TraceMatrix& gates, const TraceMatrix& ups);
  /// Adds the stages from the router to ffn_out.
  void mix_experts(const LlamaLayer& w, LlamaLayerTrace& t) const;
  /// Attends for queries at positions from position_ on.
  TraceMatrix attend(const TraceMatrix& q, const Cache& cache) const;

  const LlamaModel& model_;
  stages::Weights weights_;
  std::vector<double> frequencies_;
  std::vector<Cache> caches_;  ///< per layer
  std::int64_t position_ = 0;
};

}  // namespace greta::runtime
