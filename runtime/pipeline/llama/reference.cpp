#include "runtime/pipeline/llama/reference.hpp"

#include <fmt/format.h>

#include "kernels/model/parallel.hpp"
#include "runtime/device/result.hpp"
#include "runtime/pipeline/llama/expert_stages.hpp"

namespace greta::runtime {
namespace {

void add_to(TraceMatrix& sum, const TraceMatrix& other) {
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += other.values[i];
}

/// Converts rows [position, kv_dim] to the layout of a trace: [kv_head * positions, head_dim].
TraceMatrix by_heads(const std::vector<double>& rows, const LlamaConfig& config) {
  const auto length = static_cast<std::int64_t>(rows.size()) / config.kv_dim();
  TraceMatrix result(config.kv_heads * length, config.head_dim);
  for (std::int64_t head = 0; head < config.kv_heads; ++head) {
    for (std::int64_t position = 0; position < length; ++position) {
      const double* from = rows.data() + position * config.kv_dim() + head * config.head_dim;
      std::copy(from, from + config.head_dim, result.row(head * length + position));
    }
  }
  return result;
}

TraceMatrix last_row(const TraceMatrix& matrix) {
  TraceMatrix row(1, matrix.cols);
  std::copy(matrix.row(matrix.rows - 1), matrix.row(matrix.rows), row.row(0));
  return row;
}

}  // namespace

LlamaReference::LlamaReference(const LlamaModel& model, std::optional<DType> weights)
    : model_(model),
      weights_(weights),
      frequencies_(rope_frequencies(model.config)),
      caches_(model.weights.layers.size()) {}

void LlamaReference::reset() {
  position_ = 0;
  for (Cache& cache : caches_) cache = {};
}

TraceMatrix LlamaReference::embed(std::span<const std::int32_t> ids) const {
  const LlamaConfig& c = model_.config;
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count == 0) throw Error("there are no tokens to run");
  if (count > c.max_positions - position_) {
    throw Error(fmt::format("{} tokens after {} are more than the model's {} positions", count,
                            position_, c.max_positions));
  }
  TraceMatrix x(count, c.dim);
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int32_t id = ids[static_cast<std::size_t>(row)];
    if (id < 0 || id >= c.vocab) {
      throw Error(fmt::format("token {} is not one of the model's {}", id, c.vocab));
    }
    const std::vector<double> values = weights_.row(model_.weights.embedding, id);
    std::copy(values.begin(), values.end(), x.row(row));
  }
  return x;
}

TraceMatrix LlamaReference::attend(const TraceMatrix& q, const Cache& cache) const {
  const LlamaConfig& c = model_.config;
  TraceMatrix result(q.rows, q.cols);
  const std::int64_t group = c.heads / c.kv_heads;
  const auto some = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t row = i / c.heads, head = i % c.heads;
      const std::int64_t at = head / group * c.head_dim;
      const auto attended =
          stages::attend(q.row(row) + head * c.head_dim, cache.keys.data() + at,
                         cache.values.data() + at, c.kv_dim(), position_ + row + 1, c.head_dim);
      std::copy(attended.result.begin(), attended.result.end(),
                result.row(row) + head * c.head_dim);
    }
  };
  const std::int64_t count = q.rows * c.heads;
  if (count * (position_ + q.rows) * c.head_dim < 1 << 20) {
    some(0, count);
  } else {
    parallel_parts(count, some);
  }
  return result;
}

/// Computes silu(gate) * up of two stages.
TraceMatrix LlamaReference::gated(const TraceMatrix& gates, const TraceMatrix& ups) {
  TraceMatrix result(ups.rows, ups.cols);
  for (std::size_t i = 0; i < ups.values.size(); ++i) {
    result.values[i] = stages::silu_mul(gates.values[i], ups.values[i]);
  }
  return result;
}

void LlamaReference::mix_experts(const LlamaLayer& w, LlamaLayerTrace& t) const {
  using enum LlamaStage;
  const LlamaExperts& e = model_.config.experts;
  t[router] = stages::multiply(weights_, w.router, t[ffn_norm]);
  t[experts] = stages::select_experts(t[router], e.top_k);
  t[expert_weights] = stages::expert_weights(t[router], t[experts], e.renormalise);
  t[expert_rows] = stages::repeated(t[ffn_norm], e.top_k);
  const auto multiply = [&](WeightView LlamaExpert::*matrix, LlamaStage rows) {
    return stages::multiply_by_experts(weights_, w.experts, matrix, t[experts], t[rows]);
  };
  t[expert_gate] = multiply(&LlamaExpert::gate, expert_rows);
  t[expert_up] = multiply(&LlamaExpert::up, expert_rows);
  t[expert_silu_mul] = gated(t[expert_gate], t[expert_up]);
  t[expert_out] = multiply(&LlamaExpert::down, expert_silu_mul);
  t[expert_sum] = stages::weighted_sum(t[expert_out], t[expert_weights]);
  t[ffn_out] = t[expert_sum];
  if (e.shared_hidden_dim == 0) return add_to(t[ffn_out], t[attn_out]);
  t[shared_router] = stages::multiply(weights_, w.shared_router, t[ffn_norm]);
  t[shared_weight] = t[shared_router];
  for (double& value : t[shared_weight].values) value = stages::sigmoid(value);
  t[gate] = stages::multiply(weights_, w.gate, t[ffn_norm]);
  t[up] = stages::multiply(weights_, w.up, t[ffn_norm]);
  t[silu_mul] = gated(t[gate], t[up]);
  t[shared_scaled] = stages::weighted_sum(t[silu_mul], t[shared_weight]);
  t[shared_out] = stages::multiply(weights_, w.down, t[shared_scaled]);
  add_to(t[shared_out], t[attn_out]);
  add_to(t[ffn_out], t[shared_out]);
}

LlamaLayerTrace LlamaReference::layer(std::size_t index, const TraceMatrix& x) {
  using enum LlamaStage;
  const LlamaConfig& c = model_.config;
  const LlamaLayer& w = model_.weights.layers[index];
  LlamaLayerTrace t;
  t[attn_norm] = stages::rms_norm(weights_, w.attn_norm, x, c.norm_epsilon);
  t[q] = stages::multiply(weights_, w.wq, t[attn_norm]);
  t[k] = stages::multiply(weights_, w.wk, t[attn_norm]);
  t[v] = stages::multiply(weights_, w.wv, t[attn_norm]);
  if (c.qkv_bias) {
    for (const auto& [stage, bias] :
         {std::pair(q, &w.bq), std::pair(k, &w.bk), std::pair(v, &w.bv)})
      stages::add_bias(weights_, *bias, t[stage]);
  }
  const auto of_heads = [&](LlamaStage stage, const WeightView& gains) {
    return c.qk_norm ? stages::head_norm(weights_, gains, t[stage], c.norm_epsilon) : t[stage];
  };
  t[q_rope] = stages::rope(c, frequencies_, of_heads(q, w.q_norm), position_);
  t[k_rope] = stages::rope(c, frequencies_, of_heads(k, w.k_norm), position_);
  Cache& cache = caches_[index];
  cache.keys.insert(cache.keys.end(), t[k_rope].values.begin(), t[k_rope].values.end());
  cache.values.insert(cache.values.end(), t[v].values.begin(), t[v].values.end());
  t[attention] = attend(t[q_rope], cache);
  t[attn_out] = stages::multiply(weights_, w.wo, t[attention]);
  if (c.out_bias) stages::add_bias(weights_, w.bo, t[attn_out]);
  add_to(t[attn_out], x);
  t[ffn_norm] = stages::rms_norm(weights_, w.ffn_norm, t[attn_out], c.norm_epsilon);
  if (!w.experts.empty()) {
    mix_experts(w, t);
    return t;
  }
  t[gate] = stages::multiply(weights_, w.gate, t[ffn_norm]);
  t[up] = stages::multiply(weights_, w.up, t[ffn_norm]);
  if (c.mlp_bias) {
    stages::add_bias(weights_, w.b_gate, t[gate]);
    stages::add_bias(weights_, w.b_up, t[up]);
  }
  t[silu_mul] = gated(t[gate], t[up]);
  t[ffn_out] = stages::multiply(weights_, w.down, t[silu_mul]);
  if (c.mlp_bias) stages::add_bias(weights_, w.b_down, t[ffn_out]);
  add_to(t[ffn_out], t[attn_out]);
  return t;
}

std::vector<double> LlamaReference::run(std::span<const std::int32_t> ids, LlamaTrace* trace) {
  const LlamaConfig& c = model_.config;
  TraceMatrix x = embed(ids);
  if (trace != nullptr) {
    *trace = {};
    trace->first = position_;
    trace->ids.assign(ids.begin(), ids.end());
    trace->embedding = x;
  }
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    LlamaLayerTrace stages = layer(i, x);
    x = stages[LlamaStage::ffn_out];
    if (trace == nullptr) continue;
    stages[LlamaStage::k_cache] = by_heads(caches_[i].keys, c);
    stages[LlamaStage::v_cache] = by_heads(caches_[i].values, c);
    trace->layers.push_back(std::move(stages));
  }
  position_ += x.rows;
  if (trace == nullptr) x = last_row(x);
  const TraceMatrix normed =
      stages::rms_norm(weights_, model_.weights.final_norm, x, c.norm_epsilon);
  TraceMatrix logits = stages::multiply(weights_, model_.weights.head, normed);
  std::vector<double> last = last_row(logits).values;
  if (trace != nullptr) {
    trace->final_norm = normed;
    trace->logits = std::move(logits);
  }
  return last;
}

}  // namespace greta::runtime
