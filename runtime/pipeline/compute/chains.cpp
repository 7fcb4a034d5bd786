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

/// Checks a tensor's number of dimensions. Throws Error.
void check_rank(std::string_view chain, std::string_view name, const Tensor& tensor,
                std::size_t rank) {
  if (tensor && tensor.shape().rank() == rank) return;
  throw Error(fmt::format("{}: {} must have {} dimensions, it has the shape {}", chain, name, rank,
                          tensor ? tensor.shape().text() : "of no tensor"));
}

/// Checks that `whole` consists of `first` and two equal parts. Throws Error.
void check_halves(std::string_view chain, std::string_view what, std::int64_t whole,
                  std::int64_t first) {
  if (first >= 0 && whole > first && (whole - first) % 2 == 0) return;
  throw Error(fmt::format("{}: {} {} less {} are not two equal parts", chain, whole, what, first));
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
  check_rank("gate_up", "x", chain.x, 2);
  check_rank("gate_up", "weights", chain.weights, 2);
  check_halves("gate_up", "rows of weights", chain.weights.shape()[0], 0);
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
  check_rank("qkv", "x", chain.x, 2);
  check_rank("qkv", "weights", chain.weights, 2);
  check_halves("qkv", "rows of weights", chain.weights.shape()[0], chain.queries);
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
  check_rank("residual_norm", "x", chain.x, 2);
  check_rank("residual_norm", "weights", chain.weights, 2);
  check_rank("residual_norm", "residual", chain.residual, 2);
  return residual_norm_chain(chain.x.dtype(), chain.x.shape()[0], chain.residual.shape()[1],
                             chain.x.shape()[1]);
}

ResidualNormResults record(Pipeline& pipeline, const ResidualNorm& chain, bool apart) {
  const Problem problem = chain_of(chain);
  const bool add_norm = apart && pipeline.choose(problem).value().config.variant == "add_norm";
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
  check_rank("rope_kv", "heads", chain.heads, 4);
  check_rank("rope_kv", "keys", chain.keys, 4);
  check_rank("rope_kv", "values", chain.values, 4);
  check_halves("rope_kv", "heads", chain.heads.shape()[2], chain.queries);
  const Shape& heads = chain.heads.shape();
  return rope_kv_chain(chain.heads.dtype(), {.batch = heads[0],
                                             .tokens = heads[1],
                                             .heads = chain.queries,
                                             .kv_heads = (heads[2] - chain.queries) / 2,
                                             .dim = heads[3],
                                             .capacity = chain.keys.shape()[2]});
}

RopeKvResults record(Pipeline& pipeline, const RopeKv& chain) {
  const Problem problem = chain_of(chain);
  const Shape& shape = chain.heads.shape();
  const std::int64_t batch = shape[0], tokens = shape[1], dim = shape[3], q = chain.queries;
  const std::int64_t kv = (shape[2] - q) / 2;
  if (pipeline.choose(problem).value().config.variant == "fused") {
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
