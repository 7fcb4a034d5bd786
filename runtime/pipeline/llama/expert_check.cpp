#include "runtime/pipeline/llama/expert_check.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

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

void ExpertCheck::products(LlamaStage stage, WeightView LlamaExpert::*matrix, LlamaStage from) {
  if (!has(stage)) return;
  const std::vector<LlamaExpert>& networks = layer_.weights.experts;
  const WeightView& first = networks.front().*matrix;
  const TraceMatrix& x = rows(stage, from, first.cols);
  const TraceMatrix& experts = input(stage, LlamaStage::experts, layer_.config.experts.top_k);
  Products want;
  want.values = stages::multiply_by_experts(weights_, networks, matrix, experts, x, &want.norms);
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
  const auto multiply = [&](WeightView LlamaExpert::*matrix) {
    Products products;
    products.values = stages::multiply_by_experts(weights_, layer_.weights.experts, matrix, chosen,
                                                  x, &products.norms);
    return products;
  };
  const Products gates = multiply(&LlamaExpert::gate), ups = multiply(&LlamaExpert::up);
  add(expert_silu_mul, count, hidden, [&](std::int64_t row, std::int64_t col) {
    return bounds_.gated(x.cols, gates.at(row, col), ups.at(row, col));
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
