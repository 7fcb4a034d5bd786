#include "runtime/pipeline/llama/expert_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/model/parallel.hpp"
#include "runtime/device/result.hpp"

namespace greta::runtime {

const TraceMatrix& ExpertCheck::given(LlamaStage stage, LlamaStage from, std::int64_t rows,
                                      std::int64_t cols) const {
  if (!has(from)) {
    throw Error(fmt::format("{}: the trace lacks {}, of which it is computed",
                            stage_place(layer_.index, stage), to_string(from)));
  }
  require_shape(at(from), rows, cols, layer_.index, from);
  return at(from);
}

const TraceMatrix& ExpertCheck::input(LlamaStage stage, LlamaStage from, std::int64_t cols) const {
  return given(stage, from, tokens(), cols);
}

const TraceMatrix& ExpertCheck::rows(LlamaStage stage, LlamaStage from, std::int64_t cols) const {
  return given(stage, from, tokens() * layer_.config.experts.top_k, cols);
}

void ExpertCheck::add(LlamaStage stage, std::int64_t rows, std::int64_t cols,
                      const ExpectedAt& expected) {
  require_shape(at(stage), rows, cols, layer_.index, stage);
  findings_.push_back(judge(layer_.index, stage, at(stage), expected));
}

void ExpertCheck::router_logits(LlamaStage stage, const WeightView& router) {
  if (!has(stage)) return;
  const TraceMatrix& x = input(stage, LlamaStage::ffn_norm, layer_.config.dim);
  const Products want = products_of(weights_, router, Factor{x});
  add(stage, x.rows, router.rows, [&](std::int64_t row, std::int64_t col) {
    return bounds_.product(DType::f32, x.cols, want.at(row, col));
  });
}

void ExpertCheck::weights() {
  constexpr LlamaStage stage = LlamaStage::expert_weights;
  if (!has(stage)) return;
  const LlamaExperts& e = layer_.config.experts;
  const TraceMatrix& logits = input(stage, LlamaStage::router, e.count);
  const TraceMatrix& experts = input(stage, LlamaStage::experts, e.top_k);
  const TraceMatrix want = stages::expert_weights(logits, experts, e.renormalise);
  add(stage, tokens(), e.top_k, [&](std::int64_t row, std::int64_t col) {
    const auto logit_of = [&](std::int64_t i) {
      const double expert = experts.row(row)[i];  // which another stage checks
      const bool known = expert >= 0 && expert < static_cast<double>(e.count);
      return known ? logits.row(row)[static_cast<std::int64_t>(expert)]
                   : -std::numeric_limits<double>::infinity();
    };
    const double value = want.row(row)[col];
    if (!(value > 0)) return bounds_.once(DType::f32, value);
    std::vector<double> summed;
    for (std::int64_t i = 0; e.renormalise && i < e.top_k; ++i) summed.push_back(logit_of(i));
    if (!e.renormalise) summed.assign(logits.row(row), logits.row(row) + e.count);
    return bounds_.expert_weight(value, logit_of(col), std::move(summed));
  });
}

std::vector<LlamaExpert> ExpertCheck::multiplied_networks() const {
  std::vector<LlamaExpert> networks = layer_.weights.experts;
  if (!layer_.trace.decoded_experts) return networks;
  for (LlamaExpert& expert : networks) {
    for (WeightView* view : {&expert.gate, &expert.up, &expert.down}) view->decoded = true;
  }
  return networks;
}

Products ExpertCheck::grouped(WeightView LlamaExpert::*matrix, const TraceMatrix& chosen,
                              const TraceMatrix& x) const {
  const std::vector<LlamaExpert> networks = multiplied_networks();
  const WeightView& first = layer_.weights.experts.front().*matrix;
  Products products;
  if (first.scaled && !first.decoded) {
    const auto quantised = stages::quantised_rows(*first.scaled, x);
    products.values = stages::multiply_by_experts(weights_, networks, matrix, chosen,
                                                  quantised.values, &products.norms);
    products.errors =
        stages::multiply_sizes_by_experts(weights_, networks, matrix, chosen, quantised.errors);
    products.add_matrix_cores(first.scaled->format);
    return products;
  }
  products.values =
      stages::multiply_by_experts(weights_, networks, matrix, chosen, x, &products.norms);
  const bool decoded = layer_.trace.decoded_experts && !first.decoded;
  if (first.format().quantised != WeightFormat::q4_k || !decoded) return products;
  const double unit = unit_roundoff(layer_.types.activations);
  products.errors = products.norms;
  for (double& error : products.errors.values) error *= 4 * unit;
  return products;
}

void ExpertCheck::products(LlamaStage stage, WeightView LlamaExpert::*matrix, LlamaStage from) {
  if (!has(stage)) return;
  const WeightView& first = layer_.weights.experts.front().*matrix;
  const TraceMatrix& x = rows(stage, from, first.cols);
  const TraceMatrix& experts = input(stage, LlamaStage::experts, layer_.config.experts.top_k);
  const Products want = grouped(matrix, experts, x);
  add(stage, x.rows, first.rows, [&](std::int64_t row, std::int64_t col) {
    return bounds_.product(layer_.types.activations, x.cols, want.at(row, col));
  });
}

/// Gates and ups may be multiplied where they were computed.
void ExpertCheck::gated() {
  using enum LlamaStage;
  if (!has(expert_silu_mul)) return;
  const std::int64_t hidden = layer_.config.experts.hidden_dim;
  const std::int64_t count = tokens() * layer_.config.experts.top_k;
  if (has(expert_gate) || has(expert_up)) {
    const TraceMatrix& gates = rows(expert_silu_mul, expert_gate, hidden);
    const TraceMatrix& ups = rows(expert_silu_mul, expert_up, hidden);
    add(expert_silu_mul, count, hidden, [&](std::int64_t row, std::int64_t col) {
      return bounds_.gated(gates.row(row)[col], ups.row(row)[col]);
    });
    return;
  }
  const TraceMatrix& x = rows(expert_silu_mul, expert_rows, layer_.config.dim);
  const TraceMatrix& chosen = input(expert_silu_mul, experts, layer_.config.experts.top_k);
  const Products gates = grouped(&LlamaExpert::gate, chosen, x),
                 ups = grouped(&LlamaExpert::up, chosen, x);
  add(expert_silu_mul, count, hidden, [&](std::int64_t row, std::int64_t col) {
    return bounds_.gated(x.cols, gates.at(row, col), ups.at(row, col));
  });
}

/// One product of all of a token's experts. An expert's rows are read once for all tokens.
void ExpertCheck::fused_sum() {
  using enum LlamaStage;
  const LlamaConfig& c = layer_.config;
  const std::int64_t top_k = c.experts.top_k, hidden = c.experts.hidden_dim;
  const TraceMatrix x = stages::repeated(input(expert_sum, ffn_norm, c.dim), top_k);
  const TraceMatrix& chosen = input(expert_sum, experts, top_k);
  const TraceMatrix& factors = input(expert_sum, expert_weights, top_k);
  const std::vector<LlamaExpert>& networks = layer_.weights.experts;
  const auto multiply = [&](WeightView LlamaExpert::*matrix) {
    Products products;
    products.values =
        stages::multiply_by_experts(weights_, networks, matrix, chosen, x, &products.norms);
    return products;
  };
  const Products gates = multiply(&LlamaExpert::gate), ups = multiply(&LlamaExpert::up);
  std::vector<TraceBounds::Gated> h(static_cast<std::size_t>(x.rows * hidden));
  for (std::int64_t i = 0; i < std::ssize(h); ++i) {
    h[static_cast<std::size_t>(i)] = TraceBounds::gated_sum(c.dim, gates.at(i / hidden, i % hidden),
                                                            ups.at(i / hidden, i % hidden));
  }
  TraceMatrix sums(tokens(), c.dim), squares(tokens(), c.dim), errors(tokens(), c.dim);
  parallel_parts(c.dim, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t e = 0; e < networks.size(); ++e) {
      std::vector<std::int64_t> own;
      for (std::int64_t pair = 0; pair < x.rows; ++pair) {
        const auto at = static_cast<std::size_t>(pair);
        const bool adds = chosen.values[at] == static_cast<double>(e) && factors.values[at] != 0;
        if (adds) own.push_back(pair);
      }
      if (own.empty()) continue;
      for (std::int64_t col = begin; col < end; ++col) {
        const std::vector<double> row = weights_.row(networks[e].down, col);
        for (const std::int64_t pair : own) {
          const double weight = factors.values[static_cast<std::size_t>(pair)];
          double independent = 0, common = 0;
          for (std::int64_t i = 0; i < hidden; ++i) {
            const TraceBounds::Gated& one = h[static_cast<std::size_t>(pair * hidden + i)];
            const double factor = weight * row[static_cast<std::size_t>(i)];
            const double product = factor * one.value;
            sums.row(pair / top_k)[col] += product;
            squares.row(pair / top_k)[col] += product * product;
            independent += factor * factor * one.independent * one.independent;
            common += std::abs(factor) * one.common;
          }
          errors.row(pair / top_k)[col] += std::sqrt(independent) + common;
        }
      }
    }
  });
  const std::int64_t length = top_k * hidden;
  add(expert_sum, tokens(), c.dim, [&](std::int64_t row, std::int64_t col) {
    const double norm = std::sqrt(squares.row(row)[col]);
    const double rounding = 0x1p-24 * std::sqrt(static_cast<double>(length)) * norm;
    return bounds_.product(layer_.types.activations, length,
                           {sums.row(row)[col], norm, 0, errors.row(row)[col] + rounding});
  });
}

void ExpertCheck::routed() {
  using enum LlamaStage;
  const LlamaConfig& c = layer_.config;
  const std::int64_t top_k = c.experts.top_k;
  router_logits(router, layer_.weights.router);
  if (has(experts)) {
    const TraceMatrix want = stages::select_experts(input(experts, router, c.experts.count), top_k);
    add(experts, tokens(), top_k, [&](std::int64_t row, std::int64_t col) {
      return Expected{want.row(row)[col], 0};
    });
  }
  weights();
  if (has(expert_rows)) {
    const TraceMatrix& x = input(expert_rows, ffn_norm, c.dim);
    add(expert_rows, tokens() * top_k, c.dim, [&](std::int64_t row, std::int64_t col) {
      return Expected{x.row(row / top_k)[col], 0};
    });
  }
  products(expert_gate, &LlamaExpert::gate, expert_rows);
  products(expert_up, &LlamaExpert::up, expert_rows);
  gated();
  products(expert_out, &LlamaExpert::down, expert_silu_mul);
  if (!has(expert_sum)) return;
  if (!has(expert_out)) return fused_sum();
  Products want;
  want.values = stages::weighted_sum(rows(expert_sum, expert_out, c.dim),
                                     input(expert_sum, expert_weights, top_k), &want.norms);
  add(expert_sum, tokens(), c.dim, [&](std::int64_t row, std::int64_t col) {
    return bounds_.product(layer_.types.activations, top_k, want.at(row, col));
  });
}

void ExpertCheck::shared() {
  using enum LlamaStage;
  router_logits(shared_router, layer_.weights.shared_router);
  if (has(shared_weight)) {
    const TraceMatrix& logits = input(shared_weight, shared_router, 1);
    add(shared_weight, tokens(), 1,
        [&](std::int64_t row, std::int64_t) { return bounds_.sigmoid(logits.row(row)[0]); });
  }
  if (!has(shared_scaled)) return;
  const std::int64_t hidden = layer_.config.experts.shared_hidden_dim;
  const TraceMatrix& x = input(shared_scaled, silu_mul, hidden);
  const TraceMatrix& factors = input(shared_scaled, shared_weight, 1);
  add(shared_scaled, tokens(), hidden, [&](std::int64_t row, std::int64_t col) {
    return bounds_.once(layer_.types.activations, factors.row(row)[0] * x.row(row)[col]);
  });
}

void ExpertCheck::sum() {
  using enum LlamaStage;
  if (!has(ffn_out)) return;
  const LlamaConfig& c = layer_.config;
  const LlamaStage base = c.experts.shared_hidden_dim > 0 ? shared_out : attn_out;
  const TraceMatrix& x = input(ffn_out, expert_sum, c.dim);
  const TraceMatrix& y = input(ffn_out, base, c.dim);
  add(ffn_out, tokens(), c.dim, [&](std::int64_t row, std::int64_t col) {
    return bounds_.once(layer_.types.activations, x.row(row)[col] + y.row(row)[col]);
  });
}

}  // namespace greta::runtime
