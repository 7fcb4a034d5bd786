#include "runtime/pipeline/llama/trace.hpp"

namespace greta::runtime {

std::string_view to_string(LlamaStage stage) {
  static constexpr std::string_view names[] = {"embedding",
                                               "attn_norm",
                                               "q",
                                               "k",
                                               "v",
                                               "q_rope",
                                               "k_rope",
                                               "k_cache",
                                               "v_cache",
                                               "attention",
                                               "attn_out",
                                               "ffn_norm",
                                               "router",
                                               "experts",
                                               "expert_weights",
                                               "expert_rows",
                                               "expert_gate",
                                               "expert_up",
                                               "expert_silu_mul",
                                               "expert_out",
                                               "expert_sum",
                                               "gate",
                                               "up",
                                               "silu_mul",
                                               "shared_router",
                                               "shared_weight",
                                               "shared_scaled",
                                               "shared_out",
                                               "ffn_out",
                                               "final_norm",
                                               "logits",
                                               "attn_scores",
                                               "attn_softmax",
                                               "expert_places"};
  return names[static_cast<std::size_t>(stage)];
}

}  // namespace greta::runtime
