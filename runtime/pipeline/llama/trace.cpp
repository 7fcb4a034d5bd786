#include "runtime/pipeline/llama/trace.hpp"

namespace greta::runtime {

std::string_view to_string(LlamaStage stage) {
  static constexpr std::string_view names[] = {
      "embedding", "attn_norm", "q",          "k",        "v",           "q_rope",      "k_rope",
      "k_cache",   "v_cache",   "attention",  "attn_out", "ffn_norm",    "gate",        "up",
      "silu_mul",  "ffn_out",   "final_norm", "logits",   "attn_scores", "attn_softmax"};
  return names[static_cast<std::size_t>(stage)];
}

}  // namespace greta::runtime
