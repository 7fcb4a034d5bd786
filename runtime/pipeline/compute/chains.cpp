#include "runtime/pipeline/compute/chains.hpp"

#include <fmt/format.h>

#include "kernels/chains/chains.hpp"

namespace greta::runtime {
namespace {

GemmOptions transposed() {
  GemmOptions options;
  options.layout = Layout::nt;
  return options;
}

/// Returns the options of a product with the norm of its rows.
GemmOptions normed(const ChainNorm& norm) {
  GemmOptions options = transposed();
  options.norm_weight = norm.weight;
  options.norm_epsilon = norm.epsilon;
  return options;
}

NormOptions options_of(const ChainNorm& norm) {
  NormOptions options;
  options.weight = norm.weight;
  options.epsilon = norm.epsilon;
  return options;
}

Tensor rows_like(Pipeline& pipeline, const Tensor& x, std::int64_t cols) {
  return pipeline.temporary(x.dtype(), {x.shape()[0], cols});
}

/// Returns the norm of x, which is recorded unless it is computed already.
Tensor norm_of(Pipeline& pipeline, const Tensor& x, const ChainNorm& norm,
               const std::string& prefix) {
  if (norm.result) return norm.result;
  pipeline.label(prefix + norm.name);
  const Tensor y = pipeline.temporary(x.dtype(), x.shape());
  pipeline.rmsnorm(x, y, options_of(norm)).value();
  return y;
}

/// Returns the alternative for a chain that begins with a norm. A norm that is computed already is
/// that of an alternative that has it apart.
std::string alternative_of(Pipeline& pipeline, const Problem& chain, const ChainNorm& norm) {
  std::string chosen = pipeline.choose(chain).value().config.variant;
  if (norm.result && !has_norm_apart(pipeline, chain)) {
    throw Error(fmt::format("{}: alternative {} computes the norm itself", chain.key(), chosen));
  }
  return chosen;
}

}  // namespace

bool has_norm_apart(Pipeline& pipeline, const Problem& chain) {
  const std::string chosen = pipeline.choose(chain).value().config.variant;
  return chosen != "fused" && chosen != "normed";
}

Problem chain_of(const GateUp& chain) {
  return gate_up_chain(chain.x.dtype(), chain.x.shape()[0], chain.weights.shape()[0] / 2,
                       chain.x.shape()[1]);
}

GateUpResults record(Pipeline& pipeline, const GateUp& chain) {
  const std::string chosen = alternative_of(pipeline, chain_of(chain), chain.norm);
  const std::int64_t products = chain.weights.shape()[0];
  const bool gated = chosen == "fused" || chosen == "gated";
  GateUpResults results;
  Tensor x = chain.x;
  GemmOptions options = transposed();
  std::string name = "gate_up";
  if (has_norm_apart(pipeline, chain_of(chain))) {
    x = results.normed = norm_of(pipeline, x, chain.norm, chain.prefix);
  } else {
    options = normed(chain.norm);
    name = chain.norm.name + " + " + name;
  }
  results.out = rows_like(pipeline, x, products / 2);
  if (gated) {
    options.activation = Activation::swiglu;
    pipeline.label(chain.prefix + name + " + silu_mul");
    pipeline.gemm(x, chain.weights, results.out, options).value();
    return results;
  }
  pipeline.label(chain.prefix + name);
  results.products = rows_like(pipeline, x, products);
  pipeline.gemm(x, chain.weights, results.products, options).value();
  pipeline.label(chain.prefix + "silu_mul");
  pipeline.silu_mul(results.products, results.out).value();
  return results;
}

Problem chain_of(const Qkv& chain) {
  const std::int64_t all = chain.weights.shape()[0];
  return qkv_chain(chain.x.dtype(), chain.x.shape()[0], chain.queries, (all - chain.queries) / 2,
                   chain.x.shape()[1]);
}

QkvResults record(Pipeline& pipeline, const Qkv& chain) {
  const std::string chosen = alternative_of(pipeline, chain_of(chain), chain.norm);
  const std::int64_t all = chain.weights.shape()[0], keys = (all - chain.queries) / 2;
  QkvResults results;
  results.out = rows_like(pipeline, chain.x, all);
  if (chosen == "fused") {
    pipeline.label(chain.prefix + chain.norm.name + " + qkv");
    pipeline.gemm(chain.x, chain.weights, results.out, normed(chain.norm)).value();
    return results;
  }
  results.normed = norm_of(pipeline, chain.x, chain.norm, chain.prefix);
  if (chosen != "split") {
    pipeline.label(chain.prefix + "qkv");
    pipeline.gemm(results.normed, chain.weights, results.out, transposed()).value();
    return results;
  }
  std::int64_t first = 0;
  for (const auto& [name, count] : {std::pair{"q", chain.queries}, {"k", keys}, {"v", keys}}) {
    pipeline.label(chain.prefix + name);
    pipeline
        .gemm(results.normed, chain.weights.slice(0, first, count),
              results.out.slice(1, first, count), transposed())
        .value();
    first += count;
  }
  return results;
}

Problem chain_of(const ResidualNorm& chain) {
  return residual_norm_chain(chain.x.dtype(), chain.x.shape()[0], chain.residual.shape()[1],
                             chain.x.shape()[1]);
}

ResidualNormResults record(Pipeline& pipeline, const ResidualNorm& chain, bool apart) {
  const bool add_norm =
      apart && pipeline.choose(chain_of(chain)).value().config.variant == "add_norm";
  const auto matrix = [&] {
    return pipeline.temporary(chain.residual.dtype(), chain.residual.shape());
  };
  ResidualNormResults results;
  GemmOptions options = transposed();
  if (!add_norm) {
    options.residual = chain.residual;
    pipeline.label(chain.prefix + chain.name);
    results.sum = matrix();
    pipeline.gemm(chain.x, chain.weights, results.sum, options).value();
    return results;
  }
  const Tensor product = matrix();
  pipeline.label(chain.prefix + chain.name);
  pipeline.gemm(chain.x, chain.weights, product, options).value();
  pipeline.label(chain.prefix + "residual + " + chain.norm.name);
  results.sum = matrix();
  results.normed = matrix();
  pipeline.add_rmsnorm(product, chain.residual, results.sum, results.normed, options_of(chain.norm))
      .value();
  return results;
}

Problem chain_of(const RopeKv& chain) {
  const Shape& heads = chain.heads.shape();
  return rope_kv_chain(chain.heads.dtype(), {.batch = heads[0],
                                             .tokens = heads[1],
                                             .heads = chain.queries,
                                             .kv_heads = (heads[2] - chain.queries) / 2,
                                             .dim = heads[3],
                                             .capacity = chain.keys.shape()[2]});
}

RopeKvResults record(Pipeline& pipeline, const RopeKv& chain) {
  const Shape& shape = chain.heads.shape();
  const std::int64_t batch = shape[0], tokens = shape[1], dim = shape[3], q = chain.queries;
  const std::int64_t kv = (shape[2] - q) / 2;
  if (pipeline.choose(chain_of(chain)).value().config.variant == "fused") {
    pipeline.label(chain.prefix + "rope + kv_update");
    const Tensor out = pipeline.temporary(chain.heads.dtype(), {batch, tokens, q, dim});
    RopeAppendOptions options;
    options.pairs = chain.pairs;
    pipeline
        .rope_append(chain.heads.slice(2, 0, q), chain.heads.slice(2, q, kv),
                     chain.heads.slice(2, q + kv, kv), chain.positions, chain.table, chain.slots,
                     chain.keys, chain.values, out, options)
        .value();
    return {out, false};
  }
  const Tensor heads = chain.heads.reshape({batch * tokens, q + 2 * kv, dim});
  const Tensor rotated = heads.slice(1, 0, q + kv);
  pipeline.label(chain.prefix + "rope");
  pipeline.rope(rotated, chain.positions, chain.table, rotated, chain.pairs).value();
  pipeline.label(chain.prefix + "kv_update");
  const Shape cache{kv, chain.keys.shape()[2], dim};
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto of_sequence = [&](std::int64_t first) {
      return heads.slice(0, b * tokens, tokens).slice(1, first, kv);
    };
    pipeline
        .kv_update(of_sequence(q), of_sequence(q + kv), chain.slots.slice(0, b, 1),
                   chain.keys.slice(0, b, 1).reshape(cache),
                   chain.values.slice(0, b, 1).reshape(cache))
        .value();
  }
  return {chain.heads.slice(2, 0, q), true};
}

}  // namespace greta::runtime
