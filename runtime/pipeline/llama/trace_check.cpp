#include "runtime/pipeline/llama/trace_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/reference/activation.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/gemm_error.hpp"
#include "kernels/reference/rows.hpp"
#include "runtime/device/result.hpp"
#include "runtime/pipeline/llama/stages.hpp"

namespace greta::runtime {
namespace {

constexpr double u = 0x1p-24;
constexpr double slack = 1.001;  ///< second-order terms
constexpr double smallest = 0x1p-126;
constexpr double infinity = std::numeric_limits<double>::infinity();

std::string place(std::int64_t layer, LlamaStage stage) {
  return layer < 0 ? std::string(to_string(stage))
                   : fmt::format("layer {} {}", layer, to_string(stage));
}

void require_shape(const TraceMatrix& matrix, std::int64_t rows, std::int64_t cols,
                   std::int64_t layer, LlamaStage stage) {
  if (matrix.rows == rows && matrix.cols == cols &&
      matrix.values.size() == static_cast<std::size_t>(rows * cols)) {
    return;
  }
  throw Error(fmt::format("{}: the trace has {} x {} elements; by the model it must have {} x {}",
                          place(layer, stage), matrix.rows, matrix.cols, rows, cols));
}

using ExpectedAt = std::function<Expected(std::int64_t row, std::int64_t col)>;

StageFinding judge(std::int64_t layer, LlamaStage stage, const TraceMatrix& got,
                   const ExpectedAt& expected) {
  StageFinding worst;
  double ratio = -1;
  for (std::int64_t row = 0; row < got.rows; ++row) {
    for (std::int64_t col = 0; col < got.cols; ++col) {
      const Expected want = expected(row, col);
      const StageFinding one{layer,      stage,     false, row, col, got.row(row)[col],
                             want.value, want.bound};
      if (one.ratio() <= ratio) continue;
      ratio = one.ratio();
      worst = one;
    }
  }
  worst.passed = ratio <= 1;
  return worst;
}

/// Error bounds of the stages.
class Bounds {
 public:
  explicit Bounds(const TraceTypes& types) : types_(types) {}

  /// Bound of a dot product of this length, with a residual if set.
  Expected product(DType type, std::int64_t length, double value, double norm,
                   std::optional<double> residual = std::nullopt) const {
    double error = slack * dot_product_error(length) * (norm + std::abs(value)) + smallest;
    if (!residual) return kernels::rounded(type, value, error);
    // The product may have been stored before the addition.
    error += slack * (unit_roundoff(types_.activations) + u) * std::abs(value);
    error += slack * u * std::abs(*residual);
    if (traits(types_.activations).keeps_subnormals) error += underflow_error(types_.activations);
    return kernels::rounded(type, value + *residual, error);
  }

  /// Bound of rows::RmsNorm, plus the rounding of epsilon to f32.
  Expected norm(double value, double factor, double gain, std::int64_t length) const {
    const double relative = 0.5 * (rows::sum_error(length) + 6 * u) + 6 * u;
    const double error = std::abs(value) * relative + (factor * std::abs(gain) + 2) * smallest;
    return kernels::rounded(types_.activations, value, slack * error);
  }

  /// Bound of attention_reference().
  Expected attention(const stages::Attended& a, const double* values, std::int64_t stride,
                     std::int64_t dim, std::int64_t col) const {
    const double most = *std::max_element(a.scores.begin(), a.scores.end());
    const double log2_e = std::log2(std::exp(1.0));
    double spread = 0, errors = 0, squares = 0;
    for (std::size_t j = 0; j < a.weights.size(); ++j) {
      const double s = a.scores[j], w = a.weights[j];
      double e = dot_product_error(dim) * (a.norms[j] + std::abs(s));
      e += 3 * u * (std::abs(s) + std::abs(most));
      e += 4 * u * (3 + 2 * log2_e * (most - s)) + 16 * u;
      if (traits(types_.cache).keeps_subnormals &&
          std::exp(s - most) < smallest_normal(types_.cache)) {
        e += 1;
      }
      const double v = values[static_cast<std::int64_t>(j) * stride + col];
      spread += e * w * std::abs(v);
      errors += e * w;
      squares += w * w * v * v;
    }
    const double value = a.result[static_cast<std::size_t>(col)];
    const double size = std::abs(value), norm = std::sqrt(squares);
    const auto count = static_cast<std::int64_t>(a.weights.size());
    double error = spread + size * errors + dot_product_error(count) * (size + norm) + 4 * u * size;
    if (bits_of(types_.cache) < 32) error += unit_roundoff(types_.cache) * (size + 6 * norm);
    return kernels::rounded(types_.activations, value, slack * error + smallest);
  }

 private:
  TraceTypes types_;
};

/// A norm of all rows.
class NormStage {
 public:
  NormStage(const stages::Weights& weights, const WeightView& gains, const TraceMatrix& x,
            double epsilon)
      : want_(stages::rms_norm(weights, gains, x, epsilon)), gains_(weights.row(gains, 0)) {
    for (std::int64_t row = 0; row < x.rows; ++row) {
      factors_.push_back(stages::rms_factor(x, row, epsilon));
    }
  }

  Expected expected(const Bounds& bounds, std::int64_t row, std::int64_t col) const {
    return bounds.norm(want_.row(row)[col], factors_[static_cast<std::size_t>(row)],
                       gains_[static_cast<std::size_t>(col)], want_.cols);
  }

 private:
  TraceMatrix want_;
  std::vector<double> gains_, factors_;
};

/// Checks one layer of a trace.
class LayerCheck {
 public:
  LayerCheck(const LlamaModel& model, const TraceTypes& types, std::int64_t layer,
             std::int64_t first, const TraceMatrix& input, const LlamaLayerTrace& trace)
      : c_(model.config),
        w_(model.weights.layers.at(static_cast<std::size_t>(layer))),
        types_(types),
        bounds_(types),
        weights_(types.weights),
        layer_(layer),
        first_(first),
        input_(input),
        trace_(trace) {}

  std::vector<StageFinding> run() {
    using enum LlamaStage;
    norm(attn_norm, w_.attn_norm, input_);
    for (const auto& [stage, matrix] :
         {std::pair(q, &w_.wq), std::pair(k, &w_.wk), std::pair(v, &w_.wv)}) {
      product(stage, *matrix, attn_norm, nullptr);
    }
    rope(q_rope, q);
    rope(k_rope, k);
    cache(k_cache, k_rope);
    cache(v_cache, v);
    attend();
    product(attn_out, w_.wo, attention, &input_);
    if (has(ffn_norm)) norm(ffn_norm, w_.ffn_norm, input(ffn_norm, attn_out));
    product(gate, w_.gate, ffn_norm, nullptr);
    product(up, w_.up, ffn_norm, nullptr);
    multiply_silu();
    if (has(ffn_out)) product(ffn_out, w_.down, silu_mul, &input(ffn_out, attn_out));
    return std::move(findings_);
  }

 private:
  bool has(LlamaStage stage) const { return !trace_[stage].empty(); }
  /// Returns a stage that another one is computed from.
  const TraceMatrix& input(LlamaStage stage, LlamaStage from) const {
    if (!has(from)) {
      throw Error(fmt::format("{}: the trace lacks {}, of which it is computed",
                              place(layer_, stage), to_string(from)));
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
        [&](std::int64_t row, std::int64_t col) { return want.expected(bounds_, row, col); });
  }

  void product(LlamaStage stage, const WeightView& matrix, LlamaStage from,
               const TraceMatrix* residual) {
    if (!has(stage)) return;
    const TraceMatrix& x = input(stage, from);
    require_shape(x, input_.rows, matrix.cols, layer_, from);
    TraceMatrix norms;
    const TraceMatrix want = stages::multiply(weights_, matrix, x, &norms);
    add(stage, x.rows, matrix.rows, [&](std::int64_t row, std::int64_t col) {
      const auto kept = residual ? std::optional(residual->row(row)[col]) : std::nullopt;
      return bounds_.product(types_.activations, x.cols, want.row(row)[col], norms.row(row)[col],
                             kept);
    });
  }

  void rope(LlamaStage stage, LlamaStage from) {
    if (!has(stage)) return;
    const TraceMatrix& x = input(stage, from);
    TraceMatrix sizes;
    const TraceMatrix want = stages::rope(c_, rope_frequencies(c_), x, first_, &sizes);
    add(stage, x.rows, x.cols, [&](std::int64_t row, std::int64_t col) {
      const double error = slack * 3 * u * sizes.row(row)[col] + 3 * smallest;
      return kernels::rounded(types_.activations, want.row(row)[col], error);
    });
  }

  /// Checks what this pass appended. Earlier entries were checked with their passes.
  void cache(LlamaStage stage, LlamaStage from) {
    if (!has(stage)) return;
    const TraceMatrix& x = input(stage, from);
    const std::int64_t length = first_ + input_.rows;
    require_shape(trace_[stage], c_.kv_heads * length, c_.head_dim, layer_, stage);
    add(stage, c_.kv_heads * length, c_.head_dim, [&](std::int64_t row, std::int64_t col) {
      const std::int64_t head = row / length, token = row % length - first_;
      if (token < 0) return Expected{trace_[stage].row(row)[col], 0};
      return converted(types_.activations, types_.cache, x.row(token)[head * c_.head_dim + col]);
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
  }

  void multiply_silu() {
    constexpr LlamaStage stage = LlamaStage::silu_mul;
    if (!has(stage)) return;
    const TraceMatrix& gates = input(stage, LlamaStage::gate);
    const TraceMatrix& ups = input(stage, LlamaStage::up);
    require_shape(ups, gates.rows, gates.cols, layer_, LlamaStage::up);
    add(stage, gates.rows, gates.cols, [&](std::int64_t row, std::int64_t col) {
      const double gate = gates.row(row)[col], up = ups.row(row)[col];
      const double value = stages::silu_mul(gate, up);
      const double error = activation_error(ActivationFunction::silu, gate) * std::abs(up);
      return kernels::rounded(types_.activations, value, error + u * std::abs(value) + smallest);
    });
  }

  const LlamaConfig& c_;
  const LlamaLayer& w_;
  TraceTypes types_;
  Bounds bounds_;
  stages::Weights weights_;
  std::int64_t layer_, first_;
  const TraceMatrix& input_;
  const LlamaLayerTrace& trace_;
  std::vector<StageFinding> findings_;
};

}  // namespace

double StageFinding::ratio() const {
  if (std::isnan(want)) return std::isnan(got) ? 0 : infinity;
  if (std::isnan(got)) return infinity;
  if (got == want || bound == infinity) return 0;
  return std::abs(got - want) / bound;
}

std::string StageFinding::text() const {
  return fmt::format(
      "{}: row {}, column {} is {:.9g}, expected {:.9g} within {:.3g} (ratio {:.3g})",
      place(layer, stage), row, col, got, want, bound, ratio());
}

/// Checks the input of a layer, or of the final norm.
void LlamaTraceCheck::check_input(std::int64_t layer, const TraceMatrix& input) const {
  if (input.empty()) {
    throw Error(fmt::format("the trace lacks {}, which the next stages are computed from",
                            layer == 0 ? "embedding" : place(layer - 1, LlamaStage::ffn_out)));
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
                                                 const LlamaLayerTrace& trace) const {
  if (layer < 0 || layer >= model_.config.layers) {
    throw Error(fmt::format("layer {} is not one of the model's {}", layer, model_.config.layers));
  }
  check_input(layer, input);
  return LayerCheck(model_, types_, layer, first, input, trace).run();
}

std::vector<StageFinding> LlamaTraceCheck::head(const TraceMatrix& input,
                                                const TraceMatrix& final_norm,
                                                const TraceMatrix& logits) const {
  const LlamaConfig& c = model_.config;
  const Bounds bounds(types_);
  const stages::Weights weights(types_.weights);
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
    TraceMatrix norms;
    const TraceMatrix want = stages::multiply(weights, model_.weights.head, final_norm, &norms);
    findings.push_back(
        judge(-1, LlamaStage::logits, logits, [&](std::int64_t row, std::int64_t col) {
          return bounds.product(types_.logits, c.dim, want.row(row)[col], norms.row(row)[col]);
        }));
  }
  return findings;
}

std::vector<StageFinding> LlamaTraceCheck::check(const LlamaTrace& trace) const {
  if (trace.layers.size() != model_.weights.layers.size()) {
    throw Error(fmt::format("the trace has {} layers, the model {}", trace.layers.size(),
                            model_.weights.layers.size()));
  }
  std::vector<StageFinding> findings{embedding(trace.ids, trace.embedding)};
  const TraceMatrix* input = &trace.embedding;
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const auto more = layer(static_cast<std::int64_t>(i), trace.first, *input, trace.layers[i]);
    findings.insert(findings.end(), more.begin(), more.end());
    input = &trace.layers[i][LlamaStage::ffn_out];
  }
  const auto last = head(*input, trace.final_norm, trace.logits);
  findings.insert(findings.end(), last.begin(), last.end());
  return findings;
}

std::optional<StageFinding> first_failure(const std::vector<StageFinding>& findings) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const StageFinding& one) { return !one.passed; });
  if (found == findings.end()) return std::nullopt;
  return *found;
}

}  // namespace greta::runtime
