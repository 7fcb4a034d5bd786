#include "runtime/pipeline/llama/trace_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "kernels/reference/elements.hpp"
#include "runtime/device/result.hpp"
#include "runtime/pipeline/llama/attention_stages.hpp"
#include "runtime/pipeline/llama/expert_check.hpp"
#include "runtime/pipeline/llama/stage_judge.hpp"
#include "runtime/pipeline/llama/stages.hpp"
#include "runtime/pipeline/llama/trace_bounds.hpp"

namespace greta::runtime {
namespace {

/// Checks one layer of a trace.
class LayerCheck {
 public:
  LayerCheck(const LlamaModel& model, const TraceTypes& types, std::int64_t layer,
             std::int64_t first, const TraceMatrix& input, const LlamaLayerTrace& trace,
             const AttentionProbe& probe)
      : c_(model.config),
        w_(model.weights.layers.at(static_cast<std::size_t>(layer))),
        types_(types),
        bounds_(types),
        weights_(types.weights, trace.rounded_weights),
        layer_(layer),
        first_(first),
        input_(input),
        trace_(trace),
        probe_(probe) {}

  std::vector<StageFinding> run() {
    using enum LlamaStage;
    norm(attn_norm, w_.attn_norm, input_);
    for (const auto& [stage, matrix, bias] :
         {std::tuple(q, &w_.wq, &w_.bq), std::tuple(k, &w_.wk, &w_.bk),
          std::tuple(v, &w_.wv, &w_.bv)}) {
      if (has(stage)) product(stage, *matrix, *bias, normed(attn_norm, w_.attn_norm, input_));
    }
    rope(q_rope, q);
    rope(k_rope, k);
    if (has(k_rope) || !has(k)) {
      cache(k_cache, k_rope);
    } else {
      rotated_cache();
    }
    cache(v_cache, v);
    attend();
    product(attn_out, w_.wo, w_.bo, attention, &input_);
    if (has(ffn_norm)) norm(ffn_norm, w_.ffn_norm, input(ffn_norm, attn_out));
    if (!w_.experts.empty()) {
      mix_experts();
    } else {
      gate_rows();
      if (has(ffn_out)) {
        const Factor x = down_input();
        require_shape(x.rows, input_.rows, w_.down.cols, layer_, silu_mul);
        product(ffn_out, w_.down, w_.b_down, x, &input(ffn_out, attn_out));
      }
    }
    return std::move(findings_);
  }

 private:
  bool has(LlamaStage stage) const { return !trace_[stage].empty(); }
  /// Returns a stage that another one is computed from.
  const TraceMatrix& input(LlamaStage stage, LlamaStage from) const {
    if (!has(from)) {
      throw Error(fmt::format("{}: the trace lacks {}, of which it is computed",
                              stage_place(layer_, stage), to_string(from)));
    }
    return trace_[from];
  }
  void add(LlamaStage stage, std::int64_t rows, std::int64_t cols, const ExpectedAt& expected) {
    require_shape(trace_[stage], rows, cols, layer_, stage);
    findings_.push_back(judge(layer_, stage, trace_[stage], expected));
  }

  void norm(LlamaStage stage, const WeightView& gains, const TraceMatrix& x) {
    if (!has(stage)) return;
    const NormStage want(weights_, gains, x, c_.norm_epsilon);
    add(stage, x.rows, x.cols,
        [&, unrounded = trace_.unrounded.contains(stage)](std::int64_t row, std::int64_t col) {
          return want.expected(bounds_, row, col, unrounded);
        });
  }

  /// Returns the rows of a norm: those that were stored, or what they are in the launch of the
  /// products with them.
  Factor normed(LlamaStage stage, const WeightView& gains, const TraceMatrix& x) const {
    if (has(stage)) return {trace_[stage]};
    return {stages::rms_norm(weights_, gains, x, c_.norm_epsilon),
            TraceBounds::norm_of_factors(x.cols),
            bounds_.norm_error(x.cols, trace_.unrounded.contains(stage))};
  }
  Factor ffn_input(LlamaStage stage) const {
    using enum LlamaStage;
    return has(ffn_norm) ? Factor{trace_[ffn_norm]}
                         : normed(ffn_norm, w_.ffn_norm, input(stage, attn_out));
  }

  /// Returns silu(gate) * up, as it was stored, or as it is in the launch that quantises it.
  Factor down_input() const {
    using enum LlamaStage;
    if (has(silu_mul) || !w_.down.scaled) return {input(ffn_out, silu_mul)};
    const TraceMatrix &gates = input(ffn_out, gate), &ups = input(ffn_out, up);
    require_shape(ups, gates.rows, gates.cols, layer_, up);
    Factor x{TraceMatrix(gates.rows, gates.cols)};
    for (std::size_t i = 0; i < gates.values.size(); ++i) {
      x.rows.values[i] = stages::silu_mul(gates.values[i], ups.values[i]);
      x.of_elements = std::max(x.of_elements, TraceBounds::silu_error(gates.values[i]));
    }
    return x;
  }

  Products multiply(const WeightView& matrix, const Factor& x) const {
    return products_of(weights_, matrix, x);
  }

  void product(LlamaStage stage, const WeightView& matrix, const WeightView& bias, LlamaStage from,
               const TraceMatrix* residual) {
    if (!has(stage)) return;
    const TraceMatrix& x = input(stage, from);
    require_shape(x, input_.rows, matrix.cols, layer_, from);
    product(stage, matrix, bias, Factor{x}, residual);
  }
  /// `bias` has no elements if there is none.
  void product(LlamaStage stage, const WeightView& matrix, const WeightView& bias, const Factor& x,
               const TraceMatrix* residual = nullptr) {
    const BiasedProducts want(*this, matrix, bias, x);
    add(stage, x.rows.rows, matrix.rows, [&](std::int64_t row, std::int64_t col) {
      const auto kept = residual ? std::optional(residual->row(row)[col]) : std::nullopt;
      return bounds_.product(types_.activations, x.rows.cols, want.at(row, col), kept);
    });
  }

  /// Products and a bias, if there is one.
  struct BiasedProducts {
    BiasedProducts(const LayerCheck& check, const WeightView& matrix, const WeightView& bias,
                   const Factor& x)
        : bounds(check.bounds_), length(x.rows.cols), products(check.multiply(matrix, x)) {
      if (bias.data != nullptr) biases = check.weights_.row(bias, 0);
    }
    const TraceBounds& bounds;
    std::int64_t length;
    Products products;
    std::vector<double> biases{};

    TracedProduct at(std::int64_t row, std::int64_t col) const {
      const TracedProduct product = products.at(row, col);
      if (biases.empty()) return product;
      return bounds.biased(length, product, biases[static_cast<std::size_t>(col)]);
    }
  };

  /// Queries or keys after their rotation, and after a norm of their heads in the same launch.
  struct Rotated {
    TraceMatrix values, sizes;
    double relative = 0;
  };
  Rotated rotated(LlamaStage from, const TraceMatrix& x) const {
    Rotated result;
    const WeightView& gains = from == LlamaStage::q ? w_.q_norm : w_.k_norm;
    result.values =
        stages::rope(c_, rope_frequencies(c_),
                     c_.qk_norm ? stages::head_norm(weights_, gains, x, c_.norm_epsilon) : x,
                     first_, &result.sizes);
    if (c_.qk_norm) result.relative = TraceBounds::norm_error(c_.head_dim);
    return result;
  }
  Expected at(const Rotated& want, DType type, std::int64_t row, std::int64_t col) const {
    return bounds_.rope(type, want.values.row(row)[col], want.sizes.row(row)[col], want.relative);
  }

  void rope(LlamaStage stage, LlamaStage from) {
    if (!has(stage)) return;
    const TraceMatrix& x = input(stage, from);
    const Rotated want = rotated(from, x);
    add(stage, x.rows, x.cols,
        [&](std::int64_t row, std::int64_t col) { return at(want, types_.activations, row, col); });
  }

  /// Checks what this pass appended. Earlier entries were checked with their passes.
  void cache(LlamaStage stage, LlamaStage from) {
    if (!has(stage)) return;
    const TraceMatrix& x = input(stage, from);
    appended(stage, [&](std::int64_t token, std::int64_t col) {
      return converted(types_.activations, types_.cache, x.row(token)[col]);
    });
  }
  /// The same for keys that were rotated as they were appended.
  void rotated_cache() {
    using enum LlamaStage;
    if (!has(k_cache)) return;
    const Rotated want = rotated(k, trace_[k]);
    appended(k_cache, [&](std::int64_t token, std::int64_t col) {
      return at(want, types_.cache, token, col);
    });
  }
  /// `expected` takes a token of this pass and a column of its keys or values.
  void appended(LlamaStage stage, const ExpectedAt& expected) {
    const std::int64_t length = first_ + input_.rows;
    add(stage, c_.kv_heads * length, c_.head_dim, [&](std::int64_t row, std::int64_t col) {
      const std::int64_t head = row / length, token = row % length - first_;
      if (token < 0) return Expected{trace_[stage].row(row)[col], 0};
      return expected(token, head * c_.head_dim + col);
    });
  }

  void attend() {
    constexpr LlamaStage stage = LlamaStage::attention;
    if (!has(stage)) return;
    const TraceMatrix& queries = input(stage, LlamaStage::q_rope);
    const TraceMatrix& keys = input(stage, LlamaStage::k_cache);
    const TraceMatrix& values = input(stage, LlamaStage::v_cache);
    const std::int64_t length = first_ + input_.rows, dim = c_.head_dim;
    for (const TraceMatrix* one : {&keys, &values}) {
      require_shape(*one, c_.kv_heads * length, dim, layer_, stage);
    }
    const auto parts = probe_ ? weights_of(queries, keys, values) : std::vector<StageFinding>{};
    for (const StageFinding& part : parts) {
      if (part.stage != stage) findings_.push_back(part);
    }
    std::int64_t at = -1;  // row and head of `attended`
    stages::Attended attended;
    add(stage, queries.rows, c_.q_dim(), [&](std::int64_t row, std::int64_t col) {
      const std::int64_t head = col / dim, kv_head = head / (c_.heads / c_.kv_heads);
      const double* head_keys = keys.row(kv_head * length);
      const double* head_values = values.row(kv_head * length);
      if (at != row * c_.heads + head) {
        at = row * c_.heads + head;
        attended = stages::attend(queries.row(row) + head * dim, head_keys, head_values, dim,
                                  first_ + row + 1, dim);
      }
      return bounds_.attention(attended, head_values, dim, dim, col % dim);
    });
    if (!parts.empty() && parts.back().stage == stage && findings_.back().passed) {
      findings_.back() = parts.back();
    }
  }

  /// Checks the stages of attention by probes.
  std::vector<StageFinding> weights_of(const TraceMatrix& queries, const TraceMatrix& keys,
                                       const TraceMatrix& values) const {
    const std::int64_t length = first_ + input_.rows, dim = c_.head_dim;
    const AttentionProbes probes = probe_(layer_);
    for (const TraceMatrix* one : {&probes.weights, &probes.uniform})
      require_shape(*one, queries.rows * c_.heads, length, layer_, LlamaStage::attn_softmax);
    AttentionStages stages(types_, layer_, c_.heads, length, dim);
    for (std::int64_t row = 0; row < probes.weights.rows; ++row) {
      const std::int64_t token = row / c_.heads, head = row % c_.heads,
                         visible = first_ + token + 1;
      const std::int64_t kv_row = head / (c_.heads / c_.kv_heads) * length;
      stages.add(row,
                 stages::attend(queries.row(token) + head * dim, keys.row(kv_row),
                                values.row(kv_row), dim, visible, dim),
                 stages::attend_equally(visible), probes.weights.row(row), probes.uniform.row(row));
    }
    return stages.findings();
  }

  /// Checks the network that all tokens have, up to silu(gate) * up.
  void gate_rows() {
    using enum LlamaStage;
    for (const auto& [stage, matrix, bias] :
         {std::tuple(gate, &w_.gate, &w_.b_gate), std::tuple(up, &w_.up, &w_.b_up)}) {
      if (has(stage)) product(stage, *matrix, *bias, ffn_input(stage));
    }
    multiply_silu();
  }
  void mix_experts() {
    using enum LlamaStage;
    ExpertCheck check({c_, w_, types_, layer_, trace_}, findings_);
    check.routed();
    if (c_.experts.shared_hidden_dim > 0) {
      gate_rows();
      check.shared();
      product(shared_out, w_.down, {}, shared_scaled, &input(shared_out, attn_out));
    }
    check.sum();
  }

  void multiply_silu() {
    constexpr LlamaStage stage = LlamaStage::silu_mul;
    if (!has(stage)) return;
    if (!has(LlamaStage::gate) && !has(LlamaStage::up)) return multiply_gated();
    const TraceMatrix& gates = input(stage, LlamaStage::gate);
    const TraceMatrix& ups = input(stage, LlamaStage::up);
    require_shape(ups, gates.rows, gates.cols, layer_, LlamaStage::up);
    add(stage, gates.rows, gates.cols, [&](std::int64_t row, std::int64_t col) {
      return bounds_.gated(gates.row(row)[col], ups.row(row)[col]);
    });
  }
  /// Gates and ups that were multiplied where they were computed.
  void multiply_gated() {
    constexpr LlamaStage stage = LlamaStage::silu_mul;
    const Factor x = ffn_input(stage);
    const BiasedProducts gates(*this, w_.gate, w_.b_gate, x), ups(*this, w_.up, w_.b_up, x);
    add(stage, x.rows.rows, w_.gate.rows, [&](std::int64_t row, std::int64_t col) {
      return bounds_.gated(x.rows.cols, gates.at(row, col), ups.at(row, col));
    });
  }

  const LlamaConfig& c_;
  const LlamaLayer& w_;
  TraceTypes types_;
  TraceBounds bounds_;
  stages::Weights weights_;
  std::int64_t layer_, first_;
  const TraceMatrix& input_;
  const LlamaLayerTrace& trace_;
  const AttentionProbe& probe_;
  std::vector<StageFinding> findings_;
};

}  // namespace

/// Checks the input of a layer, or of the final norm.
void LlamaTraceCheck::check_input(std::int64_t layer, const TraceMatrix& input) const {
  if (input.empty()) {
    throw Error(
        fmt::format("the trace lacks {}, which the next stages are computed from",
                    layer == 0 ? "embedding" : stage_place(layer - 1, LlamaStage::ffn_out)));
  }
  require_shape(input, input.rows, model_.config.dim, layer - 1,
                layer == 0 ? LlamaStage::embedding : LlamaStage::ffn_out);
}

StageFinding LlamaTraceCheck::embedding(const std::vector<std::int32_t>& ids,
                                        const TraceMatrix& result) const {
  const LlamaConfig& c = model_.config;
  require_shape(result, static_cast<std::int64_t>(ids.size()), c.dim, -1, LlamaStage::embedding);
  const stages::Weights weights(types_.weights);
  std::vector<std::vector<double>> rows;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= c.vocab) {
      throw Error(fmt::format("token {} is not one of the model's {}", id, c.vocab));
    }
    rows.push_back(weights.row(model_.weights.embedding, id));
  }
  return judge(-1, LlamaStage::embedding, result, [&](std::int64_t row, std::int64_t col) {
    return converted(types_.weights, types_.activations,
                     rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(col)]);
  });
}

std::vector<StageFinding> LlamaTraceCheck::layer(std::int64_t layer, std::int64_t first,
                                                 const TraceMatrix& input,
                                                 const LlamaLayerTrace& trace,
                                                 const AttentionProbe& probe) const {
  if (layer < 0 || layer >= model_.config.layers) {
    throw Error(fmt::format("layer {} is not one of the model's {}", layer, model_.config.layers));
  }
  check_input(layer, input);
  return LayerCheck(model_, types_, layer, first, input, trace, probe).run();
}

std::vector<StageFinding> LlamaTraceCheck::head(const TraceMatrix& input,
                                                const TraceMatrix& final_norm,
                                                const TraceMatrix& logits) const {
  const LlamaConfig& c = model_.config;
  const TraceBounds bounds(types_);
  const stages::Weights weights(types_.weights);  // of one row, whose products are exact
  std::vector<StageFinding> findings;
  check_input(c.layers, input);
  if (!final_norm.empty()) {
    const std::int64_t rows = std::min(final_norm.rows, input.rows), skipped = input.rows - rows;
    require_shape(final_norm, rows, c.dim, -1, LlamaStage::final_norm);
    const NormStage want(weights, model_.weights.final_norm, input, c.norm_epsilon);
    findings.push_back(
        judge(-1, LlamaStage::final_norm, final_norm, [&](std::int64_t row, std::int64_t col) {
          return want.expected(bounds, skipped + row, col);
        }));
  }
  if (!logits.empty()) {
    if (final_norm.empty()) throw Error("logits: the trace lacks final_norm");
    require_shape(logits, final_norm.rows, c.vocab, -1, LlamaStage::logits);
    const Products want = products_of(weights, model_.weights.head, Factor{final_norm});
    findings.push_back(
        judge(-1, LlamaStage::logits, logits, [&](std::int64_t row, std::int64_t col) {
          return bounds.product(types_.logits, c.dim, want.at(row, col));
        }));
  }
  return findings;
}

std::vector<StageFinding> LlamaTraceCheck::check(const LlamaTrace& trace,
                                                 const AttentionProbe& probe) const {
  if (trace.layers.size() != model_.weights.layers.size()) {
    throw Error(fmt::format("the trace has {} layers, the model {}", trace.layers.size(),
                            model_.weights.layers.size()));
  }
  std::vector<StageFinding> findings{embedding(trace.ids, trace.embedding)};
  const TraceMatrix* input = &trace.embedding;
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const auto more =
        layer(static_cast<std::int64_t>(i), trace.first, *input, trace.layers[i], probe);
    findings.insert(findings.end(), more.begin(), more.end());
    input = &trace.layers[i][LlamaStage::ffn_out];
  }
  const auto last = head(*input, trace.final_norm, trace.logits);
  findings.insert(findings.end(), last.begin(), last.end());
  return findings;
}

}  // namespace greta::runtime
