#include "runtime/pipeline/compute/chains.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <span>
#include <utility>

#include "kernels/chains/chains.hpp"
#include "runtime/pipeline/compute/chain_operands.hpp"

namespace greta::runtime {
namespace {

NormOptions options_of(const ChainNorm& norm) {
  NormOptions options;
  options.weight = norm.weight;
  options.epsilon = norm.epsilon;
  return options;
}

/// Checks that all matrices of a projection have rows. Throws Error.
void check_matrices(std::string_view chain, const Projection& projection) {
  if (projection.segments.empty()) check_rank(chain, "weights", {}, 2);
  for (const WeightMatrix& segment : projection.segments) {
    check_rank(chain, "weights", segment.values, 2);
  }
}

ChainWeights weights_of(const WeightMatrix& weights) {
  if (!weights.quantised()) return ChainWeights::dense;
  if (!weights.has_epilogues()) return ChainWeights::others;
  return weights.order ? ChainWeights::ordered : ChainWeights::quantised;
}

ChainWeights weights_of(const Projection& weights) {
  return weights.segments.size() == 1 ? weights_of(weights.segments.front()) : ChainWeights::others;
}

Tensor rows_like(Pipeline& pipeline, const Tensor& x, std::int64_t cols) {
  return pipeline.temporary(x.dtype(), {x.shape()[0], cols});
}

/// A part of a projection's result.
struct NamedPart {
  const char* name;
  std::int64_t columns;
};

/// Returns columns of the parts.
std::vector<Tensor> columns_of(const Tensor& all, std::span<const NamedPart> parts) {
  std::vector<Tensor> columns;
  std::int64_t first = 0;
  for (const NamedPart& part : parts) {
    columns.push_back(all.slice(1, first, part.columns));
    first += part.columns;
  }
  return columns;
}

/// Returns whether columns of a single row can be operands: whether they begin at multiples of what
/// kernels load.
bool aligned_columns(const Tensor& x, const Projection& weights) {
  std::int64_t first = 0;
  for (const WeightMatrix& segment : weights.segments) {
    if (bytes_of(x.dtype(), static_cast<std::size_t>(first)) % alignment_of(x.dtype()) != 0) {
      return false;
    }
    first += segment.rows();
  }
  return true;
}

/// Records the product of rows with a matrix, to whose format they are quantised if they are
/// quantised.
void multiply(Pipeline& pipeline, const ChainRows& x, const WeightMatrix& w, const Tensor& c,
              const ProductEpilogue& epilogue = {}, const ProductPrologue& prologue = {}) {
  if (x.codes) {
    runtime::multiply(pipeline, x.codes, w, c).value();
  } else {
    runtime::multiply(pipeline, x.numbers, w, c, epilogue, prologue).value();
  }
}

/// Returns the chain as the pipeline's products of weights compute it.
Problem permitted(const Pipeline& pipeline, Problem chain) {
  const bool rounds = pipeline.rounds_weights(chain.dtype, chain.dim("rows"));
  return rounds ? with_rounded_weights(std::move(chain)) : chain;
}

/// Returns whether the alternative for rows that are quantised is one launch.
bool fuses(Pipeline& pipeline, const Problem& chain) {
  return pipeline.choose(chain).value().config.variant == "fused";
}

RowsToQuantise quantised_like(const Tensor& x, std::int64_t cols, const ScaledFormat& format) {
  return {x.shape()[0], cols, format};
}

/// Records the products of rows with a projection of several formats. Results are of the type of
/// `like`. Of one row, each format takes one launch, which writes columns of the result; of more
/// rows each part, which is a matrix of its own, since products with quantised weights are written
/// without gaps.
ProjectedParts multiply_parts(Pipeline& pipeline, const Tensor& like, const ChainRows& x,
                              const Projection& weights, std::span<const NamedPart> parts,
                              const std::string& prefix) {
  ProjectedParts results;
  const bool joined = like.shape()[0] == 1 && aligned_columns(like, weights);
  if (joined) {
    results.all = rows_like(pipeline, like, weights.rows());
    results.parts = columns_of(results.all, parts);
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size();) {
    std::string label = parts[i].name;
    std::int64_t count = parts[i].columns;
    const auto same_segment = [&](std::int64_t rows) {
      std::int64_t begin = 0;
      for (const WeightMatrix& segment : weights.segments) {
        if (first >= begin && first + rows <= begin + segment.rows()) return true;
        begin += segment.rows();
      }
      return false;
    };
    for (++i; joined && i < parts.size() && same_segment(count + parts[i].columns); ++i) {
      count += parts[i].columns;
      label += std::string(" + ") + parts[i].name;
    }
    if (!joined) results.parts.push_back(rows_like(pipeline, like, count));
    pipeline.label(prefix + label);
    multiply(pipeline, x, weights.slice(first, count),
             joined ? results.all.slice(1, first, count) : results.parts.back());
    first += count;
  }
  return results;
}

/// Records the sum of each row and a bias.
Tensor add_bias(Pipeline& pipeline, const Tensor& x, const Tensor& bias, const Tensor& zeros) {
  const Tensor sum = rows_like(pipeline, x, x.shape()[1]);
  Tensor rows = bias.reshape({1, x.shape()[1]});
  if (x.shape()[0] > 1) {  // an operand of a sum has all rows: copies of the only one of a table
    const Tensor copies = rows_like(pipeline, x, x.shape()[1]);
    pipeline.embedding(zeros.slice(0, 0, x.shape()[0]), rows, copies).value();
    rows = copies;
  }
  pipeline.add(x, rows, sum).value();
  return sum;
}

/// Records the sums of a chain's products and its bias, if there is one.
template <typename Chain>
void add_biases(Pipeline& pipeline, const Chain& chain, const char* name,
                std::span<const NamedPart> parts, ProjectedParts& results) {
  if (!chain.bias) return;
  pipeline.label(chain.prefix + name + " + bias");
  if (results.all) {
    results.all = add_bias(pipeline, results.all, chain.bias, chain.zeros);
    results.parts = columns_of(results.all, parts);
    return;
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor bias = chain.bias.slice(0, first, parts[i].columns);
    results.parts[i] = add_bias(pipeline, results.parts[i], bias, chain.zeros);
    first += parts[i].columns;
  }
}

/// Returns the norm of x, quantised for scaled weights. What is not computed already is recorded.
ChainRows norm_of(Pipeline& pipeline, const Tensor& x, const ChainNorm& norm,
                  const Projection& weights, const std::string& prefix) {
  ChainRows rows = norm.result;
  const auto input = weights.scaled();
  const std::int64_t cols = x.shape()[1];
  if (!norm.result) {
    if (input &&
        fuses(pipeline, norm_quantize_chain(x.dtype(), quantised_like(x, cols, input->format)))) {
      QuantizeOptions fused;
      fused.weight = norm.weight;
      fused.epsilon = norm.epsilon;
      pipeline.label(prefix + norm.name + " + quantize");
      rows.codes = quantise_rows(pipeline, x, cols, *input, fused);
      return rows;
    }
    pipeline.label(prefix + norm.name);
    rows.numbers = pipeline.temporary(x.dtype(), x.shape());
    pipeline.rmsnorm(x, rows.numbers, options_of(norm)).value();
  }
  if (input && !rows.codes) {
    pipeline.label(prefix + "quantize");
    rows.codes = quantise_rows(pipeline, rows.numbers, cols, *input);
  }
  return rows;
}

/// Returns the alternative for a chain that begins with a norm. A norm that is computed already is
/// that of an alternative that has it apart. `gates`: whether products may have gates as epilogue.
std::string alternative_of(Pipeline& pipeline, const Problem& chain, const ChainNorm& norm,
                           bool gates = true) {
  if (norm.result && norm.kept) {
    return pipeline.choose(chain, {{"fused", "gated"}, {"normed", "parts"}}).value().config.variant;
  }
  std::map<std::string, std::string> instead;
  if (!gates) instead = {{"fused", "normed"}, {"gated", "parts"}};
  std::string chosen = pipeline.choose(chain, instead).value().config.variant;
  if (norm.result && !has_norm_apart(pipeline, chain)) {
    throw Error(fmt::format("{}: alternative {} computes the norm itself", chain.key(), chosen));
  }
  return chosen;
}

}  // namespace

bool has_norm_apart(Pipeline& pipeline, const Problem& chain) {
  const std::string chosen = pipeline.look_up(permitted(pipeline, chain)).value().config.variant;
  return chosen != "fused" && chosen != "normed";
}

Problem chain_of(const GateUp& chain) {
  check_rank("gate_up", "x", chain.x, 2);
  check_matrices("gate_up", chain.weights);
  check_halves("gate_up", "rows of weights", chain.weights.rows(), 0);
  return gate_up_chain(chain.x.dtype(), chain.x.shape()[0], chain.weights.rows() / 2,
                       chain.x.shape()[1], weights_of(chain.weights));
}

namespace {

/// Returns silu(gate) * up, quantised for the product that follows if its alternative is one
/// launch.
ChainRows multiply_silu(Pipeline& pipeline, const GateUp& chain, const ProjectedParts& products,
                        std::int64_t hidden) {
  ChainRows out;
  const Tensor& gate = products.all ? products.all : products.parts[0];
  const Tensor up = products.all ? Tensor{} : products.parts[1];
  const auto& input = chain.quantised_to;
  if (input &&
      fuses(pipeline,
            silu_quantize_chain(chain.x.dtype(), quantised_like(chain.x, hidden, input->format)))) {
    QuantizeOptions fused;
    fused.up = up;
    pipeline.label(chain.prefix + "silu_mul + quantize");
    out.codes = quantise_rows(pipeline, gate, hidden, *input, fused);
    return out;
  }
  pipeline.label(chain.prefix + "silu_mul");
  out.numbers = rows_like(pipeline, chain.x, hidden);
  if (up) {
    pipeline.silu_mul(gate, up, out.numbers).value();
  } else {
    pipeline.silu_mul(gate, out.numbers).value();
  }
  return out;
}

}  // namespace

GateUpResults record(Pipeline& pipeline, const GateUp& chain) {
  const std::string chosen = alternative_of(pipeline, permitted(pipeline, chain_of(chain)),
                                            chain.norm, !chain.bias || chain.weights.dense());
  const std::int64_t hidden = chain.weights.rows() / 2;
  const bool gated = chosen == "fused" || chosen == "gated";
  const std::array parts{NamedPart{"gate", hidden}, NamedPart{"up", hidden}};
  GateUpResults results;
  ChainRows x{chain.x};
  ProductPrologue prologue;
  std::string name = "gate_up";
  if (chosen != "fused" && chosen != "normed") {
    x = norm_of(pipeline, chain.x, chain.norm, chain.weights, chain.prefix);
    results.normed = x.numbers;
  } else {
    prologue = {chain.norm.weight, chain.norm.epsilon};
    name = chain.norm.name + " + " + name;
  }
  if (gated) {
    const WeightMatrix& weights = chain.weights.segments.front();
    results.out.numbers = rows_like(pipeline, chain.x, hidden);
    pipeline.label(chain.prefix + name + " + silu_mul");
    multiply(pipeline, x, weights, results.out.numbers, {.bias = chain.bias, .gated = true},
             prologue);
    return results;
  }
  if (chain.weights.segments.size() > 1) {
    results.products = multiply_parts(pipeline, chain.x, x, chain.weights, parts, chain.prefix);
    add_biases(pipeline, chain, "gate_up", parts, results.products);
  } else {
    const WeightMatrix& weights = chain.weights.segments.front();
    pipeline.label(chain.prefix + name);
    const Tensor all = results.products.all = rows_like(pipeline, chain.x, 2 * hidden);
    results.products.parts = columns_of(all, parts);
    if (weights.has_epilogues()) {
      multiply(pipeline, x, weights, all, {.bias = chain.bias}, prologue);
    } else {
      multiply(pipeline, x, weights, all, {}, prologue);
      add_biases(pipeline, chain, "gate_up", parts, results.products);
    }
  }
  results.out = multiply_silu(pipeline, chain, results.products, hidden);
  return results;
}

Problem chain_of(const Qkv& chain) {
  check_rank("qkv", "x", chain.x, 2);
  check_matrices("qkv", chain.weights);
  const std::int64_t all = chain.weights.rows();
  check_halves("qkv", "rows of weights", all, chain.queries);
  return qkv_chain(chain.x.dtype(), chain.x.shape()[0], chain.queries, (all - chain.queries) / 2,
                   chain.x.shape()[1], weights_of(chain.weights));
}

QkvResults record(Pipeline& pipeline, const Qkv& chain) {
  const std::string chosen =
      alternative_of(pipeline, permitted(pipeline, chain_of(chain)), chain.norm);
  const std::int64_t keys = (chain.weights.rows() - chain.queries) / 2;
  const std::array parts{NamedPart{"q", chain.queries}, NamedPart{"k", keys}, NamedPart{"v", keys}};
  const WeightMatrix& weights = chain.weights.segments.front();
  QkvResults results;
  ChainRows x{chain.x};
  if (chosen != "fused") {
    x = norm_of(pipeline, chain.x, chain.norm, chain.weights, chain.prefix);
    results.normed = x.numbers;
  }
  if (chain.weights.segments.size() > 1) {
    results.out = multiply_parts(pipeline, chain.x, x, chain.weights, parts, chain.prefix);
    add_biases(pipeline, chain, "qkv", parts, results.out);
    return results;
  }
  results.out.all = rows_like(pipeline, chain.x, chain.weights.rows());
  results.out.parts = columns_of(results.out.all, parts);
  if (chosen != "split") {
    pipeline.label(chain.prefix + (chosen == "fused" ? chain.norm.name + " + qkv" : "qkv"));
    if (weights.has_epilogues()) {
      multiply(pipeline, x, weights, results.out.all, {.bias = chain.bias},
               chosen == "fused" ? ProductPrologue{chain.norm.weight, chain.norm.epsilon}
                                 : ProductPrologue{});
    } else {
      multiply(pipeline, x, weights, results.out.all);
      add_biases(pipeline, chain, "qkv", parts, results.out);
    }
    return results;
  }
  GemmOptions options = by_weight_rows();
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (chain.bias) options.bias = chain.bias.slice(0, first, parts[i].columns);
    pipeline.label(chain.prefix + parts[i].name);
    pipeline
        .gemm(x.numbers, weights.values.slice(0, first, parts[i].columns), results.out.parts[i],
              options)
        .value();
    first += parts[i].columns;
  }
  return results;
}

Problem chain_of(const ResidualNorm& chain) {
  const Tensor& x = chain.x.codes ? chain.x.codes.codes : chain.x.numbers;
  check_rank("residual_norm", "x", x, 2);
  check_rank("residual_norm", "weights", chain.weights.values, 2);
  check_rank("residual_norm", "residual", chain.residual, 2);
  return residual_norm_chain(chain.residual.dtype(), x.shape()[0], chain.residual.shape()[1],
                             x.shape()[1], weights_of(chain.weights));
}

namespace {

/// Records the product of a chain, and the sum with its bias.
Tensor product_and_bias(Pipeline& pipeline, const ResidualNorm& chain) {
  const Tensor product = pipeline.temporary(chain.residual.dtype(), chain.residual.shape());
  if (chain.weights.has_epilogues()) {
    multiply(pipeline, chain.x, chain.weights, product, {.bias = chain.bias});
    return product;
  }
  multiply(pipeline, chain.x, chain.weights, product);
  if (!chain.bias) return product;
  pipeline.label(chain.prefix + chain.name + " + bias");
  return add_bias(pipeline, product, chain.bias, chain.zeros);
}

}  // namespace

ResidualNormResults record(Pipeline& pipeline, const ResidualNorm& chain, bool apart) {
  const Problem problem = permitted(pipeline, chain_of(chain));
  const bool add_norm = apart && pipeline.choose(problem).value().config.variant == "add_norm";
  const auto matrix = [&] {
    return pipeline.temporary(chain.residual.dtype(), chain.residual.shape());
  };
  ResidualNormResults results;
  pipeline.label(chain.prefix + chain.name);
  const bool one_launch =
      chain.weights.has_epilogues() && !(chain.bias && chain.weights.quantised());
  if (!add_norm && one_launch) {
    results.sum = matrix();
    multiply(pipeline, chain.x, chain.weights, results.sum,
             {.bias = chain.bias, .residual = chain.residual});
    return results;
  }
  const Tensor product = product_and_bias(pipeline, chain);
  results.sum = matrix();
  if (!add_norm) {
    pipeline.label(chain.prefix + "residual");
    pipeline.add(product, chain.residual, results.sum).value();
    return results;
  }
  const std::string label = chain.prefix + "residual + " + chain.norm.name;
  const std::int64_t cols = chain.residual.shape()[1];
  const auto& input = chain.quantised_to;
  if (input &&
      fuses(pipeline, add_norm_quantize_chain(product.dtype(),
                                              quantised_like(product, cols, input->format)))) {
    QuantizeOptions fused;
    fused.weight = chain.norm.weight;
    fused.epsilon = chain.norm.epsilon;
    fused.residual = chain.residual;
    fused.sum = results.sum;
    pipeline.label(label + " + quantize");
    results.normed.codes = quantise_rows(pipeline, product, cols, *input, fused);
    return results;
  }
  pipeline.label(label);
  results.normed.numbers = matrix();
  pipeline
      .add_rmsnorm(product, chain.residual, results.sum, results.normed.numbers,
                   options_of(chain.norm))
      .value();
  return results;
}

}  // namespace greta::runtime
