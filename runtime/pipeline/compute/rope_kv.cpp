#include <fmt/format.h>

#include "kernels/chains/chains.hpp"
#include "runtime/pipeline/compute/chain_operands.hpp"
#include "runtime/pipeline/compute/chains.hpp"

/// The chain of the rotation of queries and keys and the append to the caches.
namespace greta::runtime {

Problem chain_of(const RopeKv& chain) {
  check_rank("rope_kv", "heads", chain.heads, 4);
  check_rank("rope_kv", "keys", chain.keys, 4);
  check_rank("rope_kv", "values", chain.values, 4);
  std::int64_t kv = 0;
  if (chain.apart_k || chain.apart_v) {
    check_rank("rope_kv", "apart_k", chain.apart_k, 4);
    check_rank("rope_kv", "apart_v", chain.apart_v, 4);
    kv = chain.apart_k.shape()[2];
    check_halves("rope_kv", "heads", chain.heads.shape()[2] + kv + chain.apart_v.shape()[2],
                 chain.queries);
  } else {
    check_halves("rope_kv", "heads", chain.heads.shape()[2], chain.queries);
    kv = (chain.heads.shape()[2] - chain.queries) / 2;
  }
  const Shape& heads = chain.heads.shape();
  return rope_kv_chain(chain.heads.dtype(), {.batch = heads[0],
                                             .tokens = heads[1],
                                             .heads = chain.queries,
                                             .kv_heads = kv,
                                             .dim = heads[3],
                                             .capacity = chain.capacity()});
}

namespace {

/// Rotates queries and keys in place, and appends keys and values of one sequence after the other.
void rope_in_place(Pipeline& pipeline, const RopeKv& chain, const Tensor& k, const Tensor& v) {
  const Shape& shape = chain.heads.shape();
  const std::int64_t batch = shape[0], tokens = shape[1], dim = shape[3], kv = k.shape()[2];
  const auto merged = [&](const Tensor& tensor) {  // the tokens of all sequences
    return tensor.reshape({batch * tokens, tensor.shape()[2], dim});
  };
  const auto rotate = [&](const Tensor& heads) {
    pipeline.rope(heads, chain.positions, chain.table, heads, chain.pairs).value();
  };
  pipeline.label(chain.prefix + "rope");
  Tensor keys, values;
  if (chain.apart_k) {
    keys = merged(k);
    values = merged(v);
    rotate(merged(chain.heads));
    rotate(keys);
  } else {
    const Tensor heads = merged(chain.heads);
    keys = heads.slice(1, chain.queries, kv);
    values = heads.slice(1, chain.queries + kv, kv);
    rotate(heads.slice(1, 0, chain.queries + kv));
  }
  pipeline.label(chain.prefix + "kv_update");
  const Shape cache{kv, chain.keys.shape()[2], dim};
  for (std::int64_t b = 0; b < batch; ++b) {
    const Tensor k_new = keys.slice(0, b * tokens, tokens);
    const Tensor v_new = values.slice(0, b * tokens, tokens);
    const Tensor slot = chain.slots.slice(0, b, 1);
    if (chain.block_table) {
      pipeline
          .kv_update(k_new, v_new, slot, chain.keys, chain.values, chain.block_table.slice(0, b, 1))
          .value();
      continue;
    }
    pipeline
        .kv_update(k_new, v_new, slot, chain.keys.slice(0, b, 1).reshape(cache),
                   chain.values.slice(0, b, 1).reshape(cache))
        .value();
  }
}

}  // namespace

RopeKvResults record(Pipeline& pipeline, const RopeKv& chain) {
  const Problem problem = chain_of(chain);
  const Shape& shape = chain.heads.shape();
  const std::int64_t q = chain.queries, kv = problem.dim("kv_heads");
  const Tensor k = chain.apart_k ? chain.apart_k : chain.heads.slice(2, q, kv);
  const Tensor v = chain.apart_v ? chain.apart_v : chain.heads.slice(2, q + kv, kv);
  if (chain.q_norm || pipeline.choose(problem).value().config.variant == "fused") {
    pipeline.label(chain.prefix + "rope + kv_update");
    const Tensor out = pipeline.temporary(chain.heads.dtype(), {shape[0], shape[1], q, shape[3]});
    RopeAppendOptions options;
    options.pairs = chain.pairs;
    options.q_norm = chain.q_norm;
    options.k_norm = chain.k_norm;
    options.epsilon = chain.epsilon;
    options.block_table = chain.block_table;
    pipeline
        .rope_append(chain.heads.slice(2, 0, q), k, v, chain.positions, chain.table, chain.slots,
                     chain.keys, chain.values, out, options)
        .value();
    return {out, false};
  }
  rope_in_place(pipeline, chain, k, v);
  return {chain.heads.slice(2, 0, q), true};
}

}  // namespace greta::runtime
