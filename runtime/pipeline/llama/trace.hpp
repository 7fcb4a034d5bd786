#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// The stages of a Llama in order. The first and the last two belong to the whole model, the others
/// to each layer.
enum class LlamaStage {
  embedding,   ///< [tokens, dim]
  attn_norm,   ///< [tokens, dim]
  q,           ///< [tokens, heads * head_dim]
  k,           ///< [tokens, kv_heads * head_dim]
  v,           ///< [tokens, kv_heads * head_dim]
  q_rope,      ///< as q
  k_rope,      ///< as k
  k_cache,     ///< [kv_heads * length, head_dim]: keys of all positions so far, by KV head
  v_cache,     ///< as k_cache
  attention,   ///< [tokens, heads * head_dim]
  attn_out,    ///< [tokens, dim]: output projection plus the layer's input
  ffn_norm,    ///< [tokens, dim]
  gate,        ///< [tokens, hidden_dim]
  up,          ///< [tokens, hidden_dim]
  silu_mul,    ///< [tokens, hidden_dim]
  ffn_out,     ///< [tokens, dim]: down projection plus attn_out; the next layer's input
  final_norm,  ///< [tokens or fewer, dim]: of the last tokens
  logits,      ///< [rows of final_norm, vocab]
  // Parts of a launch of attention, whose results are in no memory (attention_stages.hpp).
  attn_scores,   ///< by query and key
  attn_softmax,  ///< by query and key; attention is the sum of values with these weights
};

std::string_view to_string(LlamaStage stage);  ///< e.g. "attn_norm"
/// The number of stages in a layer, attn_norm to ffn_out.
constexpr std::size_t layer_stages = 15;

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
