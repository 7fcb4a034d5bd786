#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/llama/trace.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// The types that a device's run keeps things in; arithmetic is f32.
struct TraceTypes {
  DType weights = DType::f32;      ///< of all weights, norms' included: rounded from the model's
  DType activations = DType::f32;  ///< of every stage but these:
  DType cache = DType::f32;        ///< k_cache, v_cache
  DType logits = DType::f32;
};

/// What came of one stage: its element closest to (or farthest past) its bound.
struct StageFinding {
  std::int64_t layer = -1;  ///< -1: embedding, final_norm, logits
  LlamaStage stage = LlamaStage::embedding;
  bool passed = false;
  std::int64_t row = 0, col = 0;
  double got = 0, want = 0, bound = 0;

  /// |got - want| / bound; infinite where got is NaN.
  double ratio() const;
  /// "layer 3 attention: row 5, column 17 is 0.13, expected 0.12 within 0.003 (ratio 3.3)"
  std::string text() const;
};

/// Checks a device's run stage by stage: each is computed again in FP64 from the *device's own*
/// results of the stages before it, so that errors don't add up, and held to a bound of a right f32
/// computation on these inputs. The first finding that has not passed is where a run went wrong.
///
/// Bounds, u = 2^-24, before the rounding to the stage's type (see rounded()):
/// - dot products of length K: gamma (norm + |result|), gamma = u min(K + 2, 8) sqrt(K), norm the
///   root of the sum of squared products: GemmErrorModel's, whose products have mean zero, and
///   again for the part that a mean makes, as activations have one. With a residual u of each term,
///   and the product's rounding to the activations' type, as when the addition is an operation of
///   its own.
/// - norms: rows::RmsNorm's. silu_mul: activation_error(). Copies: converted().
/// - rope: 3 u (|a cos| + |b sin|): two roundings, and the table's.
/// - attention: attention_reference()'s.
class LlamaTraceCheck {
 public:
  /// The model must outlive it.
  LlamaTraceCheck(const LlamaModel& model, const TraceTypes& types)
      : model_(model), types_(types) {}

  /// All of a trace, in order. A stage that is empty is left out; where another needs it, that is
  /// an Error. Shapes that contradict the model are Errors, too.
  std::vector<StageFinding> check(const LlamaTrace& trace) const;

  // The same in parts, for traces too large to keep.
  StageFinding embedding(const std::vector<std::int32_t>& ids, const TraceMatrix& result) const;
  /// `input`: the embedding, or ffn_out of the layer before.
  std::vector<StageFinding> layer(std::int64_t layer, std::int64_t first, const TraceMatrix& input,
                                  const LlamaLayerTrace& trace) const;
  /// `input`: ffn_out of the last layer.
  std::vector<StageFinding> head(const TraceMatrix& input, const TraceMatrix& final_norm,
                                 const TraceMatrix& logits) const;

 private:
  void check_input(std::int64_t layer, const TraceMatrix& input) const;

  const LlamaModel& model_;
  TraceTypes types_;
};

/// The first that has not passed.
std::optional<StageFinding> first_failure(const std::vector<StageFinding>& findings);

}  // namespace greta::runtime
