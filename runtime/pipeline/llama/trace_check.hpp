#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/llama/trace.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// Results of a device's attention with one-hot values, each [tokens * heads, length]: the weight
/// of each key.
struct AttentionProbes {
  TraceMatrix weights;  ///< of the pass's own queries and keys
  TraceMatrix uniform;  ///< of queries that are 0: equal weights, whatever the keys are
};
/// Runs the probes of a layer of the pass that was traced last.
using AttentionProbe = std::function<AttentionProbes(std::int64_t layer)>;

/// The storage types of a device's run; arithmetic is f32.
struct TraceTypes {
  DType weights = DType::f32;      ///< of all weights, including norms; rounded from the model's
  DType activations = DType::f32;  ///< of every stage except the following
  DType cache = DType::f32;        ///< k_cache, v_cache
  DType logits = DType::f32;
};

/// Returns e.g. "layer 3 attention"; without a layer, if that is below 0.
std::string stage_place(std::int64_t layer, LlamaStage stage);

/// The outcome of one stage: its element closest to (or furthest past) its bound.
struct StageFinding {
  std::int64_t layer = -1;  ///< -1: embedding, final_norm, logits
  LlamaStage stage = LlamaStage::embedding;
  bool passed = false;
  std::int64_t row = 0, col = 0;
  double got = 0, want = 0, bound = 0;
  std::int64_t head = -1;  ///< of attention's weights, where row is a query and col a key
  bool has_nan = false;    ///< any element of the stage is NaN, which may be what it must be

  /// Returns |got - want| / bound; infinite if got is NaN.
  double ratio() const;
  /// Returns e.g. "layer 3 attention: row 5, column 17 is 0.13, expected 0.12 within 0.003 (ratio
  /// 3.3)".
  std::string text() const;
};

/// Checks a device's run stage by stage. Each stage is recomputed in FP64 from the *device's*
/// results of the earlier stages, so that errors do not accumulate, and compared with the error
/// bound of an f32 computation on these inputs. The first failed finding is where a run went wrong.
///
/// Error bounds before the rounding to the stage's type (see rounded()), with u = 2^-24:
/// - dot products of length K: gamma (norm + |result|), gamma = u min(K + 2, 8) sqrt(K), where norm
///   is the root of the sum of squared products. GemmErrorModel's bound gamma norm assumes products
///   of mean zero; gamma |result| covers a nonzero mean, which activations have. With a residual, u
///   for each term and the rounding of the product to the activations' type, as the addition may be
///   a separate operation.
/// - products with rows that are normalised in the same launch: norm_factor_error() of the result,
///   and u for the rounding of epsilon. Gates and ups of the same launch: the error of each times
///   the other (times 1.1 for silu's slope), and silu_mul's.
/// - products with scaled matrices: rows are quantised as quantize_reference() says, and further
///   errors are those of their scales, of codes beside a border, and scaled_gemm_reference()'s.
/// - products with quantised weights that a layer's pass may round: rounding_of_weights().
/// - norms: rows::RmsNorm. silu_mul: activation_error(). Copies: converted().
/// - rope: 3u (|a cos| + |b sin|): two roundings, and that of the table.
/// - attention: attention_reference(). Stages of experts: ExpertCheck.
class LlamaTraceCheck {
 public:
  /// The model must outlive the object.
  LlamaTraceCheck(const LlamaModel& model, const TraceTypes& types)
      : model_(model), types_(types) {}

  /// Checks all stages of a trace in order. Empty stages are skipped. Norms, k_rope, and gate
  /// together with up may be empty where they were computed in the launch of the stages that follow
  /// from them, which are checked together with them then. Throws Error if a stage depends on
  /// another empty one, or if a shape contradicts the model.
  /// With a probe, attention's scores and softmax are stages of their own.
  std::vector<StageFinding> check(const LlamaTrace& trace, const AttentionProbe& probe = {}) const;

  // The same in parts, for traces that are too large to keep.
  StageFinding embedding(const std::vector<std::int32_t>& ids, const TraceMatrix& result) const;
  /// `input` is the embedding, or ffn_out of the previous layer.
  std::vector<StageFinding> layer(std::int64_t layer, std::int64_t first, const TraceMatrix& input,
                                  const LlamaLayerTrace& trace,
                                  const AttentionProbe& probe = {}) const;
  /// `input` is ffn_out of the last layer.
  std::vector<StageFinding> head(const TraceMatrix& input, const TraceMatrix& final_norm,
                                 const TraceMatrix& logits) const;

 private:
  void check_input(std::int64_t layer, const TraceMatrix& input) const;

  const LlamaModel& model_;
  TraceTypes types_;
};

/// Returns the first finding that has not passed.
std::optional<StageFinding> first_failure(const std::vector<StageFinding>& findings);

}  // namespace greta::runtime
