#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/llama/expert_stages.hpp"
#include "runtime/pipeline/llama/stage_judge.hpp"
#include "runtime/pipeline/llama/trace_bounds.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"

namespace greta::runtime {

/// Checks the stages of a layer's experts for LlamaTraceCheck. The device's own logits say which
/// experts a token must have, exactly: of equal logits, those with the lower numbers. So logits
/// that are nearly equal, whose order errors may change, are no error of later stages.
///
/// Error bounds before the rounding to a stage's type, with u = 2^-24:
/// - weights: an exponential of l - m has the relative error e = u (6 + 5 |l - m|), m the largest
///   logit; a quotient with the sum of n of them has their mean e, weighted by what they are, and u
///   (n + 5) more.
/// - the sigmoid of l: u (12 + 5 |l|), relative.
/// - expert_rows: none. Products, silu_mul and the sum over a token's experts: as those of other
///   layers. Products with a weight, and sums of two rows: u.
/// - Products with scaled matrices, whose rows are quantised: as those of other layers.
/// - Quantised matrices that are decoded for grouped products (LlamaLayerTrace::decoded_experts)
///   are rounded to the activations' type. A weight of q4_k, which is wrong by some u before, may
///   be rounded to the neighbour of what FP64 rounds it to: about one of 2^13 in f16. So products
///   with these may be wrong by 4 roundings of the type, times the root of the sum of squared
///   products.
/// - expert_sum in the launches that compute what precedes it as well: y is the sum over a token's
///   experts of weight * down * h with h = silu(gate) * up in f32, of n = top_k * hidden_dim
///   products. Its error is that of a dot product of this length, and one rounding more of each
///   product; and of an expert the root of the sum of the squares of what the errors of its gates
///   and ups change, and the sum of what those of the activation do.
class ExpertCheck {
 public:
  /// What is checked. All must outlive the check.
  struct Layer {
    const LlamaConfig& config;
    const LlamaLayer& weights;
    const TraceTypes& types;
    std::int64_t index;
    const LlamaLayerTrace& trace;
  };
  /// Findings are added to `findings`.
  ExpertCheck(const Layer& layer, std::vector<StageFinding>& findings)
      : layer_(layer), bounds_(layer.types), weights_(layer.types.weights), findings_(findings) {}

  void routed();  ///< router to expert_sum
  void shared();  ///< shared_router to shared_scaled
  void sum();     ///< ffn_out

 private:
  const TraceMatrix& at(LlamaStage stage) const { return layer_.trace[stage]; }
  bool has(LlamaStage stage) const { return !at(stage).empty(); }
  /// Returns a stage that another one is computed from. Throws Error if it is empty or has another
  /// shape.
  const TraceMatrix& given(LlamaStage stage, LlamaStage from, std::int64_t rows,
                           std::int64_t cols) const;
  /// The same of a row for each token.
  const TraceMatrix& input(LlamaStage stage, LlamaStage from, std::int64_t cols) const;
  /// The same of the rows of experts, of which there are top_k of each token.
  const TraceMatrix& rows(LlamaStage stage, LlamaStage from, std::int64_t cols) const;
  void add(LlamaStage stage, std::int64_t rows, std::int64_t cols, const ExpectedAt& expected);

  void router_logits(LlamaStage stage, const WeightView& router);
  void weights();
  void products(LlamaStage stage, WeightView LlamaExpert::*matrix, LlamaStage from);
  void gated();
  /// Returns the networks as grouped products have them: quantised ones as they are stored, or as
  /// numbers.
  std::vector<LlamaExpert> multiplied_networks() const;
  /// Returns grouped products of rows with the experts of `chosen`.
  Products grouped(WeightView LlamaExpert::*matrix, const TraceMatrix& chosen,
                   const TraceMatrix& x) const;
  void fused_sum();

  std::int64_t tokens() const { return at(LlamaStage::attn_out).rows; }

  Layer layer_;
  TraceBounds bounds_;
  stages::Weights weights_;
  std::vector<StageFinding>& findings_;
};

}  // namespace greta::runtime
