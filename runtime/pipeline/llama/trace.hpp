#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// The stages of a Llama in order. The embedding, final_norm and logits belong to the whole model,
/// the others to each layer.
enum class LlamaStage {
  embedding,  ///< [tokens, dim]
  attn_norm,  ///< [tokens, dim]
  q,          ///< [tokens, heads * head_dim]
  k,          ///< [tokens, kv_heads * head_dim]
  v,          ///< [tokens, kv_heads * head_dim]
  q_rope,     ///< as q
  k_rope,     ///< as k
  k_cache,    ///< [kv_heads * length, head_dim]: keys of all positions so far, by KV head
  v_cache,    ///< as k_cache
  attention,  ///< [tokens, heads * head_dim]
  attn_out,   ///< [tokens, dim]: output projection plus the layer's input
  ffn_norm,   ///< [tokens, dim]
  // Of layers with experts. Rows of [tokens * top_k, ...] are by token, then in the order of its
  // experts.
  router,           ///< [tokens, experts], f32: logits
  experts,          ///< [tokens, top_k]: numbers of a token's experts
  expert_weights,   ///< [tokens, top_k], f32
  expert_rows,      ///< [tokens * top_k, dim]: ffn_norm, for each expert of a token
  expert_gate,      ///< [tokens * top_k, hidden_dim of an expert]
  expert_up,        ///< as expert_gate
  expert_silu_mul,  ///< as expert_gate
  expert_out,       ///< [tokens * top_k, dim]: down projection
  expert_sum,       ///< [tokens, dim]: sum of expert_out times expert_weights
  // Of layers without experts, or of the shared expert.
  gate,      ///< [tokens, ffn_dim]
  up,        ///< [tokens, ffn_dim]
  silu_mul,  ///< [tokens, ffn_dim]
  // Of layers with a shared expert.
  shared_router,  ///< [tokens, 1], f32: logit
  shared_weight,  ///< [tokens, 1], f32: its sigmoid
  shared_scaled,  ///< as silu_mul: times shared_weight
  shared_out,     ///< [tokens, dim]: down projection plus attn_out
  /// [tokens, dim]: down projection plus attn_out; or expert_sum plus shared_out, or plus attn_out.
  /// The next layer's input.
  ffn_out,
  final_norm,  ///< [tokens or fewer, dim]: of the last tokens
  logits,      ///< [rows of final_norm, vocab]
  // Parts of a launch of attention, whose results are in no memory (attention_stages.hpp).
  attn_scores,   ///< by query and key
  attn_softmax,  ///< by query and key; attention is the sum of values with these weights
  /// [tokens, top_k]: where a device has the rows of experts (LlamaTap). In no trace.
  expert_places,
};

std::string_view to_string(LlamaStage stage);  ///< e.g. "attn_norm"
/// The number of stages in a layer, attn_norm to ffn_out.
constexpr std::size_t layer_stages = 28;
/// The number of those that a layer without experts has.
constexpr std::size_t dense_layer_stages = 15;

/// A stage's result, row-major. Represents values of 32- and 16-bit types exactly.
struct TraceMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;

  TraceMatrix() = default;
  TraceMatrix(std::int64_t r, std::int64_t c)
      : rows(r), cols(c), values(static_cast<std::size_t>(r * c)) {}
  bool empty() const { return values.empty(); }
  double* row(std::int64_t r) { return values.data() + r * cols; }
  const double* row(std::int64_t r) const { return values.data() + r * cols; }
};

/// The stages of a layer.
class LlamaLayerTrace {
 public:
  TraceMatrix& operator[](LlamaStage stage) { return stages_.at(index(stage)); }
  const TraceMatrix& operator[](LlamaStage stage) const { return stages_.at(index(stage)); }
  /// Norms that were computed with the sum they are of, before it was rounded to its type.
  std::set<LlamaStage> unrounded{};
  /// Whether quantised experts were decoded to numbers of the activations' type before products.
  bool decoded_experts = false;
  /// Whether products with quantised weights could round these (Operations::rounds_weights()).
  bool rounded_weights = false;

 private:
  static std::size_t index(LlamaStage stage) {
    return static_cast<std::size_t>(stage) - static_cast<std::size_t>(LlamaStage::attn_norm);
  }
  std::array<TraceMatrix, layer_stages> stages_;
};

/// One pass of tokens of a sequence through a model.
struct LlamaTrace {
  std::int64_t first = 0;  ///< position of ids[0]
  std::vector<std::int32_t> ids;
  TraceMatrix embedding;
  std::vector<LlamaLayerTrace> layers;
  TraceMatrix final_norm;
  TraceMatrix logits;
};

}  // namespace greta::runtime
