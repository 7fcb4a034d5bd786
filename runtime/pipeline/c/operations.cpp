// Operations of greta.h but products.
#include <optional>

#include "runtime/pipeline/c/call.hpp"

using namespace greta::runtime;     // NOLINT
using namespace greta::runtime::c;  // NOLINT

greta_status greta_add(greta_operations* operations, const greta_tensor* a, const greta_tensor* b,
                       const greta_tensor* out) {
  return guarded([&] {
    const Call call(operations);
    return call->add(call(a, "a"), call(b, "b"), call(out, "out"));
  });
}

greta_status greta_silu_mul(greta_operations* operations, const greta_tensor* gate,
                            const greta_tensor* up, const greta_tensor* out) {
  return guarded([&] {
    const Call call(operations);
    return call->silu_mul(call(gate, "gate"), call(up, "up"), call(out, "out"));
  });
}

greta_status greta_silu_mul_packed(greta_operations* operations, const greta_tensor* x,
                                   const greta_tensor* out) {
  return guarded([&] {
    const Call call(operations);
    return call->silu_mul(call(x, "x"), call(out, "out"));
  });
}

greta_status greta_gelu(greta_operations* operations, const greta_tensor* x,
                        const greta_tensor* out, greta_gelu_form form) {
  return guarded([&] {
    const Call call(operations);
    return call->gelu(call(x, "x"), call(out, "out"),
                      choose(form, {GeluForm::tanh, GeluForm::erf}, "form"));
  });
}

greta_status greta_rope(greta_operations* operations, const greta_tensor* x,
                        const greta_tensor* positions, const greta_tensor* table,
                        const greta_tensor* out, greta_rope_pairs pairs) {
  return guarded([&] {
    const Call call(operations);
    return call->rope(call(x, "x"), call(positions, "positions"), call(table, "table"),
                      call(out, "out"),
                      choose(pairs, {RopePairs::interleaved, RopePairs::half}, "pairs"));
  });
}

greta_status greta_kv_update(greta_operations* operations, const greta_tensor* k,
                             const greta_tensor* v, const greta_tensor* position,
                             const greta_tensor* k_cache, const greta_tensor* v_cache) {
  return guarded([&] {
    const Call call(operations);
    return call->kv_update(call(k, "k"), call(v, "v"), call(position, "position"),
                           call(k_cache, "k_cache"), call(v_cache, "v_cache"));
  });
}

greta_status greta_kv_update_pages(greta_operations* operations, const greta_tensor* k,
                                   const greta_tensor* v, const greta_tensor* position,
                                   const greta_tensor* block_table, const greta_tensor* k_cache,
                                   const greta_tensor* v_cache) {
  return guarded([&] {
    const Call call(operations);
    return call->kv_update(call(k, "k"), call(v, "v"), call(position, "position"),
                           call(k_cache, "k_cache"), call(v_cache, "v_cache"),
                           call(block_table, "block_table"));
  });
}

greta_status greta_rope_append(greta_operations* operations, const greta_tensor* q,
                               const greta_tensor* k, const greta_tensor* v,
                               const greta_tensor* positions, const greta_tensor* table,
                               const greta_tensor* slots, const greta_tensor* k_cache,
                               const greta_tensor* v_cache, const greta_tensor* out,
                               const greta_rope_append_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_rope_append_defaults(), "options");
    RopeAppendOptions wanted;
    wanted.pairs = choose(given.pairs, {RopePairs::interleaved, RopePairs::half}, "pairs");
    wanted.epsilon = given.epsilon;
    wanted.q_norm = call.maybe(given.q_norm, "q_norm");
    wanted.k_norm = call.maybe(given.k_norm, "k_norm");
    wanted.block_table = call.maybe(given.block_table, "block_table");
    return call->rope_append(call(q, "q"), call(k, "k"), call(v, "v"), call(positions, "positions"),
                             call(table, "table"), call(slots, "slots"), call(k_cache, "k_cache"),
                             call(v_cache, "v_cache"), call(out, "out"), wanted);
  });
}

greta_status greta_embedding(greta_operations* operations, const greta_tensor* ids,
                             const greta_tensor* table, const greta_tensor* out) {
  return guarded([&] {
    const Call call(operations);
    return call->embedding(call(ids, "ids"), call(table, "table"), call(out, "out"));
  });
}

greta_status greta_gather_columns(greta_operations* operations, const greta_tensor* ids,
                                  const greta_tensor* x, const greta_tensor* out) {
  return guarded([&] {
    const Call call(operations);
    return call->gather_columns(call(ids, "ids"), call(x, "x"), call(out, "out"));
  });
}

greta_status greta_argmax(greta_operations* operations, const greta_tensor* x,
                          const greta_tensor* index) {
  return guarded([&] {
    const Call call(operations);
    return call->argmax(call(x, "x"), call(index, "index"));
  });
}

greta_status greta_sample(greta_operations* operations, const greta_tensor* x,
                          const greta_tensor* settings, const greta_tensor* seeds,
                          const greta_tensor* penalties, const greta_tensor* history,
                          const greta_tensor* token) {
  return guarded([&] {
    const Call call(operations);
    return call->sample(call(x, "x"), call(settings, "settings"), call(seeds, "seeds"),
                        call(token, "token"),
                        {.penalties = call.maybe(penalties, "penalties"),
                         .history = call.maybe(history, "history")});
  });
}

greta_status greta_route(greta_operations* operations, const greta_tensor* logits,
                         const greta_tensor* ids, const greta_tensor* weights,
                         const greta_route_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_route_defaults(), "options");
    return call->route(call(logits, "logits"), call(ids, "ids"), call(weights, "weights"),
                       {.score = given.sigmoid != 0 ? ExpertScore::sigmoid : ExpertScore::softmax,
                        .renormalise = given.renormalise != 0,
                        .bias = call.maybe(given.bias, "bias"),
                        .scale = given.scale,
                        .groups = given.groups,
                        .top_groups = given.top_groups});
  });
}

greta_status greta_permute(greta_operations* operations, const greta_tensor* x,
                           const greta_tensor* ids, const greta_tensor* out,
                           const greta_tensor* groups, const greta_tensor* places, int64_t block) {
  return guarded([&] {
    const Call call(operations);
    return call->permute(call(x, "x"), call(ids, "ids"), call(out, "out"), call(groups, "groups"),
                         call(places, "places"), block);
  });
}

greta_status greta_unpermute(greta_operations* operations, const greta_tensor* y,
                             const greta_tensor* places, const greta_tensor* weights,
                             const greta_tensor* out) {
  return guarded([&] {
    const Call call(operations);
    return call->unpermute(call(y, "y"), call(places, "places"), call(weights, "weights"),
                           call(out, "out"));
  });
}

greta_status greta_experts(greta_operations* operations, const greta_tensor* x,
                           const greta_tensor* ids, const greta_tensor* weights,
                           const greta_tensor* gate_up, const greta_tensor* down,
                           const greta_tensor* out) {
  return guarded([&] {
    const Call call(operations);
    return call->experts(call(x, "x"), call(ids, "ids"), call(weights, "weights"),
                         call(gate_up, "gate_up"), call(down, "down"), call(out, "out"));
  });
}

greta_status greta_quantized_experts(greta_operations* operations, const greta_tensor* x,
                                     const greta_tensor* ids, const greta_tensor* weights,
                                     const greta_tensor* gate_up, const greta_tensor* down,
                                     const greta_tensor* out,
                                     const greta_quantized_experts_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_quantized_experts_defaults(), "options");
    std::optional<greta::kernels::WeightFormat> down_format;
    if (given.down_weights != GRETA_SAME_WEIGHTS) {
      down_format = weight_format(given.down_weights, "down_weights");
    }
    return call->experts(call(x, "x"), call(ids, "ids"), call(weights, "weights"),
                         call(gate_up, "gate_up"), call(down, "down"), call(out, "out"),
                         {.format = weight_format(given.weights, "weights"),
                          .down_format = down_format,
                          .gate_up_scales = call.maybe(given.gate_up_scales, "gate_up_scales"),
                          .down_scales = call.maybe(given.down_scales, "down_scales"),
                          .gate_up_zeros = call.maybe(given.gate_up_zeros, "gate_up_zeros"),
                          .down_zeros = call.maybe(given.down_zeros, "down_zeros"),
                          .panels = in_panels(given.packing)});
  });
}

greta_status greta_attention(greta_operations* operations, const greta_tensor* q,
                             const greta_tensor* k, const greta_tensor* v,
                             const greta_tensor* lengths, const greta_tensor* out,
                             const greta_attention_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_attention_defaults(), "options");
    AttentionOptions wanted;
    if (given.scale != 0) wanted.scale = given.scale;
    wanted.causal = given.causal != 0;
    if (given.window != 0) wanted.window = given.window;
    if (given.softcap != 0) wanted.softcap = given.softcap;
    wanted.sinks = call.maybe(given.sinks, "sinks");
    wanted.lse = call.maybe(given.lse, "lse");
    wanted.block_table = call.maybe(given.block_table, "block_table");
    wanted.cu_seqlens_q = call.maybe(given.cu_seqlens_q, "cu_seqlens_q");
    wanted.cu_seqlens_k = call.maybe(given.cu_seqlens_k, "cu_seqlens_k");
    wanted.ragged = given.ragged != 0;
    wanted.tree = call.maybe(given.tree, "tree");
    const bool packed = wanted.cu_seqlens_q || wanted.cu_seqlens_k;
    return call->attention(call(q, "q"), call(k, "k"), call(v, "v"),
                           packed ? call.maybe(lengths, "lengths") : call(lengths, "lengths"),
                           call(out, "out"), wanted);
  });
}

greta_status greta_latent_attention(greta_operations* operations, const greta_tensor* q,
                                    const greta_tensor* cache, const greta_tensor* lengths,
                                    const greta_tensor* out,
                                    const greta_latent_attention_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_latent_attention_defaults(), "options");
    LatentAttentionOptions wanted;
    if (given.scale != 0) wanted.scale = given.scale;
    wanted.causal = given.causal != 0;
    wanted.tree = call.maybe(given.tree, "tree");
    wanted.lse = call.maybe(given.lse, "lse");
    wanted.block_table = call.maybe(given.block_table, "block_table");
    wanted.ragged = given.ragged != 0;
    return call->latent_attention(call(q, "q"), call(cache, "cache"), call(lengths, "lengths"),
                                  call(out, "out"), wanted);
  });
}

greta_status greta_attention_merge(greta_operations* operations, const greta_tensor* outs,
                                   const greta_tensor* lses, const greta_tensor* out,
                                   const greta_tensor* lse) {
  return guarded([&] {
    const Call call(operations);
    return call->attention_merge(call(outs, "outs"), call(lses, "lses"), call(out, "out"),
                                 call.maybe(lse, "lse"));
  });
}

greta_status greta_softmax(greta_operations* operations, const greta_tensor* x,
                           const greta_tensor* y, const greta_softmax_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_softmax_defaults(), "options");
    SoftmaxOptions wanted;
    wanted.scale = given.scale;
    wanted.mask = given.causal != 0 ? SoftmaxMask::causal : SoftmaxMask::none;
    wanted.added = call.maybe(given.mask, "mask");
    return call->softmax(call(x, "x"), call(y, "y"), wanted);
  });
}

greta_status greta_layernorm(greta_operations* operations, const greta_tensor* x,
                             const greta_tensor* y, const greta_norm_options* options) {
  return guarded([&] {
    const Call call(operations);
    return call->layernorm(call(x, "x"), call(y, "y"), call.norm(options));
  });
}

greta_status greta_rmsnorm(greta_operations* operations, const greta_tensor* x,
                           const greta_tensor* y, const greta_norm_options* options) {
  return guarded([&] {
    const Call call(operations);
    return call->rmsnorm(call(x, "x"), call(y, "y"), call.norm(options));
  });
}

greta_status greta_add_rmsnorm(greta_operations* operations, const greta_tensor* x,
                               const greta_tensor* residual, const greta_tensor* sum,
                               const greta_tensor* y, const greta_norm_options* options) {
  return guarded([&] {
    const Call call(operations);
    return call->add_rmsnorm(call(x, "x"), call(residual, "residual"), call(sum, "sum"),
                             call(y, "y"), call.norm(options));
  });
}

greta_status greta_layernorm_rmsnorm(greta_operations* operations, const greta_tensor* x,
                                     const greta_tensor* y, const greta_tensor* gain,
                                     const greta_norm_options* options) {
  return guarded([&] {
    const Call call(operations);
    return call->layernorm_rmsnorm(call(x, "x"), call(y, "y"), call.maybe(gain, "gain"),
                                   call.norm(options));
  });
}

greta_status greta_copy(greta_operations* operations, const greta_tensor* to,
                        const greta_tensor* from) {
  return guarded([&] {
    const Call call(operations);
    return call->copy(call(to, "to"), call(from, "from"));
  });
}

greta_status greta_run(greta_operations* operations, const char* problem,
                       const greta_tensor* const* operands, std::size_t count) {
  return guarded([&]() -> Result<void> {
    const Call call(operations);
    auto wanted = Problem::parse(&need(problem, "problem"));
    if (!wanted) return wanted.failure();
    if (count > 0) need(operands, "operands");
    std::vector<Tensor> given;
    for (std::size_t i = 0; i < count; ++i) given.push_back(call(operands[i], "an operand"));
    return call->run(*wanted, given);
  });
}
