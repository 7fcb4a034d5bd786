// Protects: the trace check passes correct runs and names the first stage that is wrong.

#include "runtime/pipeline/llama/trace_check.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "tests/layers.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::trace_check_test {
namespace {

using test::expect_refused;
using test::TemporaryFolder;
using test::TinyLlama;

/// The stages that a fused pass keeps in no memory.
constexpr LlamaStage within[] = {LlamaStage::attn_norm, LlamaStage::k_rope, LlamaStage::ffn_norm,
                                 LlamaStage::gate, LlamaStage::up};

/// Emulates a device's run: all sums in f32, and each stage stored in its type. A fused run stores
/// fewer stages.
class FloatLlama {
 public:
  FloatLlama(const LlamaModel& model, const TraceTypes& types, bool fused = false)
      : model_(model), types_(types), fused_(fused) {}

  LlamaTrace run(const std::vector<std::int32_t>& ids) {
    const LlamaConfig& c = model_.config;
    LlamaTrace trace;
    trace.first = first_;
    trace.ids = ids;
    trace.embedding = TraceMatrix(static_cast<std::int64_t>(ids.size()), c.dim);
    for (std::int64_t row = 0; row < trace.embedding.rows; ++row) {
      for (std::int64_t col = 0; col < c.dim; ++col) {
        const float value =
            weight(model_.weights.embedding, ids[static_cast<std::size_t>(row)], col);
        trace.embedding.row(row)[col] = stored(types_.activations, value);
      }
    }
    const TraceMatrix* x = &trace.embedding;
    keys_.resize(model_.weights.layers.size());
    values_.resize(keys_.size());
    trace.layers.resize(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      layer(i, *x, trace.layers[i]);
      x = &trace.layers[i][LlamaStage::ffn_out];
    }
    first_ += x->rows;
    for (LlamaLayerTrace& stages : trace.layers) {
      for (const LlamaStage stage : within) {
        if (fused_) stages[stage] = {};
      }
    }
    trace.final_norm = norm(*x, model_.weights.final_norm, types_.activations);
    trace.logits = multiply(trace.final_norm, model_.weights.head, types_.logits);
    return trace;
  }

 private:
  static double stored(DType type, float value) {
    std::array<std::byte, 4> bytes{};
    store_element(type, bytes.data(), 0, value);
    return load_element(type, bytes.data(), 0);
  }
  float weight(const WeightView& view, std::int64_t row, std::int64_t col) const {
    const double value =
        load_element(view.dtype, view.data, static_cast<std::size_t>(row * view.cols + col));
    return static_cast<float>(stored(types_.weights, static_cast<float>(value)));
  }
  static float at(const TraceMatrix& m, std::int64_t row, std::int64_t col) {
    return static_cast<float>(m.row(row)[col]);
  }

  TraceMatrix multiply(const TraceMatrix& x, const WeightView& w, DType type,
                       const TraceMatrix* residual = nullptr) const {
    TraceMatrix out(x.rows, w.rows);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      for (std::int64_t col = 0; col < w.rows; ++col) {
        float sum = 0;
        for (std::int64_t i = 0; i < x.cols; ++i) sum += at(x, row, i) * weight(w, col, i);
        if (residual != nullptr) sum += at(*residual, row, col);
        out.row(row)[col] = stored(type, sum);
      }
    }
    return out;
  }
  TraceMatrix norm(const TraceMatrix& x, const WeightView& w, DType type) const {
    TraceMatrix out(x.rows, x.cols);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      float sum = 0;
      for (std::int64_t i = 0; i < x.cols; ++i) sum += at(x, row, i) * at(x, row, i);
      const float epsilon = static_cast<float>(model_.config.norm_epsilon);
      const float factor = 1 / std::sqrt(sum / static_cast<float>(x.cols) + epsilon);
      for (std::int64_t i = 0; i < x.cols; ++i) {
        out.row(row)[i] = stored(type, at(x, row, i) * factor * weight(w, 0, i));
      }
    }
    return out;
  }
  TraceMatrix rope(const TraceMatrix& x, DType type) const {
    const LlamaConfig& c = model_.config;
    const std::vector<float> table = rope_table(c, c.max_positions);
    TraceMatrix out = x;
    const std::int64_t half = c.head_dim / 2;
    for (std::int64_t row = 0; row < x.rows; ++row) {
      for (std::int64_t col = 0; col < x.cols; col += c.head_dim) {
        for (std::int64_t pair = 0; pair < half; ++pair) {
          const bool near = c.rope_style == RopeStyle::interleaved;
          const std::int64_t i = col + (near ? 2 * pair : pair), j = near ? i + 1 : i + half;
          const auto entry = static_cast<std::size_t>((first_ + row) * c.head_dim + 2 * pair);
          const float a = at(x, row, i), b = at(x, row, j), cosine = table[entry],
                      sine = table[entry + 1];
          out.row(row)[i] = stored(type, a * cosine - b * sine);
          out.row(row)[j] = stored(type, a * sine + b * cosine);
        }
      }
    }
    return out;
  }
  /// Appends a pass to a cache of rows and returns it in the form of a trace.
  TraceMatrix append(std::vector<std::vector<double>>& rows, const TraceMatrix& x) const {
    const LlamaConfig& c = model_.config;
    for (std::int64_t row = 0; row < x.rows; ++row) {
      std::vector<double>& to = rows.emplace_back();
      for (std::int64_t col = 0; col < x.cols; ++col)
        to.push_back(stored(types_.cache, at(x, row, col)));
    }
    const auto length = static_cast<std::int64_t>(rows.size());
    TraceMatrix out(c.kv_heads * length, c.head_dim);
    for (std::int64_t row = 0; row < out.rows; ++row) {
      const std::vector<double>& from = rows[static_cast<std::size_t>(row % length)];
      std::copy_n(from.begin() + row / length * c.head_dim, c.head_dim, out.row(row));
    }
    return out;
  }
  TraceMatrix attend(const TraceMatrix& q, const TraceMatrix& keys,
                     const TraceMatrix& values) const {
    const LlamaConfig& c = model_.config;
    const std::int64_t length = keys.rows / c.kv_heads;
    TraceMatrix out(q.rows, q.cols);
    for (std::int64_t row = 0; row < q.rows; ++row) {
      for (std::int64_t head = 0; head < c.heads; ++head) {
        const std::int64_t from = head / (c.heads / c.kv_heads) * length;
        std::vector<float> p;
        float most = -1e30F, total = 0;
        for (std::int64_t j = 0; j <= first_ + row; ++j) {
          float sum = 0;
          for (std::int64_t d = 0; d < c.head_dim; ++d) {
            sum += at(q, row, head * c.head_dim + d) * at(keys, from + j, d);
          }
          p.push_back(sum / std::sqrt(static_cast<float>(c.head_dim)));
          most = std::max(most, p.back());
        }
        for (float& value : p) total += value = std::exp(value - most);
        for (std::int64_t d = 0; d < c.head_dim; ++d) {
          float sum = 0;
          for (std::size_t j = 0; j < p.size(); ++j) {
            sum += p[j] * at(values, from + static_cast<std::int64_t>(j), d);
          }
          out.row(row)[head * c.head_dim + d] = stored(types_.activations, sum / total);
        }
      }
    }
    return out;
  }
  void layer(std::size_t index, const TraceMatrix& x, LlamaLayerTrace& t) {
    using enum LlamaStage;
    const LlamaLayer& w = model_.weights.layers[index];
    const DType type = types_.activations, between = fused_ ? DType::f32 : type;
    t[attn_norm] = norm(x, w.attn_norm, between);
    t[q] = multiply(t[attn_norm], w.wq, type);
    t[k] = multiply(t[attn_norm], w.wk, type);
    t[v] = multiply(t[attn_norm], w.wv, type);
    t[q_rope] = rope(t[q], type);
    t[k_rope] = rope(t[k], between);
    t[k_cache] = append(keys_[index], t[k_rope]);
    t[v_cache] = append(values_[index], t[v]);
    t[attention] = attend(t[q_rope], t[k_cache], t[v_cache]);
    t[attn_out] = multiply(t[attention], w.wo, type, &x);
    t[ffn_norm] = norm(t[attn_out], w.ffn_norm, between);
    t[gate] = multiply(t[ffn_norm], w.gate, between);
    t[up] = multiply(t[ffn_norm], w.up, between);
    t[silu_mul] = TraceMatrix(x.rows, w.up.rows);
    for (std::size_t i = 0; i < t[up].values.size(); ++i) {
      const auto g = static_cast<float>(t[gate].values[i]), u = static_cast<float>(t[up].values[i]);
      t[silu_mul].values[i] = stored(type, g / (1 + std::exp(-g)) * u);
    }
    t[ffn_out] = multiply(t[silu_mul], w.down, type, &t[attn_out]);
  }

  const LlamaModel& model_;
  TraceTypes types_;
  bool fused_;
  std::int64_t first_ = 0;
  std::vector<std::vector<std::vector<double>>> keys_, values_;
};

class LlamaTraceCheck : public testing::Test {
 protected:
  LlamaTraceCheck() {
    TinyLlama().write(folder_.path());
    model_ = load_llama(folder_.path());
  }

  TemporaryFolder folder_;
  LlamaModel model_;
};

const TraceTypes f32{};
const TraceTypes f16{DType::f16, DType::f16, DType::f16, DType::f32};
const TraceTypes bf16{DType::bf16, DType::bf16, DType::bf16, DType::bf16};
const std::vector<std::int32_t> prompt{1, 17, 299, 5, 42};

// Correct arithmetic passes in prefill and decoding, and comes close to its bounds.
TEST_F(LlamaTraceCheck, RightRunsPass) {
  for (const TraceTypes& types : {f32, f16, bf16}) {
    FloatLlama device(model_, types);
    const runtime::LlamaTraceCheck check(model_, types);
    for (const auto& ids : {prompt, std::vector<std::int32_t>{7}}) {
      const auto findings = check.check(device.run(ids));
      EXPECT_EQ(findings.size(), 1 + 2 * dense_layer_stages + 2);
      double largest = 0;
      for (const StageFinding& finding : findings) {
        EXPECT_TRUE(finding.passed) << finding.text();
        largest = std::max(largest, finding.ratio());
      }
      EXPECT_GT(largest, 0.02);
    }
  }
}

// Stages that are in no memory are checked together with those that follow from them.
TEST_F(LlamaTraceCheck, RightFusedRunsPass) {
  for (const TraceTypes& types : {f32, f16, bf16}) {
    FloatLlama device(model_, types, true);
    const runtime::LlamaTraceCheck check(model_, types);
    for (const auto& ids : {prompt, std::vector<std::int32_t>{7}}) {
      const auto findings = check.check(device.run(ids));
      EXPECT_EQ(findings.size(), 1 + 2 * (dense_layer_stages - std::size(within)) + 2);
      for (const StageFinding& finding : findings) EXPECT_TRUE(finding.passed) << finding.text();
    }
  }
}

TEST_F(LlamaTraceCheck, NamesTheStageOfAFusedRunThatIsWrong) {
  using enum LlamaStage;
  for (const TraceTypes& types : {f32, f16}) {
    const runtime::LlamaTraceCheck check(model_, types);
    LlamaTrace trace = FloatLlama(model_, types, true).run(prompt);
    for (const LlamaStage stage : {q, k, v, k_cache, silu_mul}) {
      double& value = trace.layers[1][stage].values[17];
      const double kept = value;
      value += (types.weights == DType::f32 ? 1e-4 : 0.05) * (0.02 + std::abs(kept));
      const auto failure = first_failure(check.check(trace));
      ASSERT_TRUE(failure) << to_string(stage);
      EXPECT_EQ(failure->layer, 1);
      EXPECT_EQ(to_string(failure->stage), to_string(stage)) << failure->text();
      value = kept;
    }
    EXPECT_FALSE(first_failure(check.check(trace)));
  }
}

TEST_F(LlamaTraceCheck, Stories260KPasses) {
  const LlamaModel stories =
      load_llama(std::string(GRETA_TEST_DATA) + "/stories260K/stories260K.bin");
  for (const TraceTypes& types : {f32, f16}) {
    const auto trace = FloatLlama(stories, types).run({1, 403, 407, 261, 378, 432, 383, 286});
    const auto failure = first_failure(runtime::LlamaTraceCheck(stories, types).check(trace));
    EXPECT_FALSE(failure) << failure->text();
  }
}

/// Visits every matrix that a trace has.
void for_each_stage(LlamaTrace& trace,
                    const std::function<void(std::int64_t, LlamaStage, TraceMatrix&)>& use) {
  use(-1, LlamaStage::embedding, trace.embedding);
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    for (std::size_t s = 1; s <= layer_stages; ++s) {
      const auto stage = static_cast<LlamaStage>(s);
      TraceMatrix& matrix = trace.layers[i][stage];
      if (!matrix.empty()) use(static_cast<std::int64_t>(i), stage, matrix);
    }
  }
  use(-1, LlamaStage::final_norm, trace.final_norm);
  use(-1, LlamaStage::logits, trace.logits);
}

// One element of one stage is wrong by several rounding errors of its type. The check must name
// that stage of that layer, although later stages are affected as well.
TEST_F(LlamaTraceCheck, NamesTheStageThatIsWrong) {
  for (const TraceTypes& types : {f32, f16}) {
    const runtime::LlamaTraceCheck check(model_, types);
    LlamaTrace good = FloatLlama(model_, types).run(prompt);
    int stages = 0;
    for_each_stage(good, [&](std::int64_t layer, LlamaStage stage, TraceMatrix& matrix) {
      const std::size_t at = matrix.values.size() / 2;
      const double kept = matrix.values[at];
      const double size = 0.02 + std::abs(kept);
      for (const double wrong :
           {kept + (types.weights == DType::f32 ? 1e-4 : 0.05) * size, std::nan("")}) {
        matrix.values[at] = wrong;
        const auto failure = first_failure(check.check(good));
        ASSERT_TRUE(failure) << to_string(stage);
        EXPECT_EQ(failure->layer, layer) << failure->text();
        EXPECT_EQ(to_string(failure->stage), to_string(stage)) << failure->text();
        EXPECT_EQ(failure->row * matrix.cols + failure->col, static_cast<std::int64_t>(at));
      }
      matrix.values[at] = kept;
      ++stages;
    });
    EXPECT_EQ(stages, 33);
    EXPECT_FALSE(first_failure(check.check(good)));
  }
}

// Typical mistakes: the first stage that is affected must be named.
TEST_F(LlamaTraceCheck, FindsWrongModels) {
  const auto trace = FloatLlama(model_, f32).run(prompt);
  const auto first_with = [&](const std::function<void(LlamaModel&)>& change) {
    LlamaModel other = model_;
    change(other);
    const auto failure = first_failure(runtime::LlamaTraceCheck(other, f32).check(trace));
    return failure ? failure->text().substr(0, failure->text().find(':')) : "nothing";
  };
  EXPECT_EQ(first_with([](LlamaModel&) {}), "nothing");
  EXPECT_EQ(first_with([](LlamaModel& m) { m.config.rope_style = RopeStyle::interleaved; }),
            "layer 0 q_rope");
  EXPECT_EQ(first_with([](LlamaModel& m) { m.config.rope_theta = 500000; }), "layer 0 q_rope");
  EXPECT_EQ(first_with([](LlamaModel& m) { m.config.norm_epsilon = 1e-3; }), "layer 0 attn_norm");
  EXPECT_EQ(first_with(
                [](LlamaModel& m) { std::swap(m.weights.layers[1].gate, m.weights.layers[1].up); }),
            "layer 1 gate");
  EXPECT_EQ(first_with([](LlamaModel& m) { m.weights.head = m.weights.embedding; }), "logits");
}

TEST_F(LlamaTraceCheck, TakesPartsOfTraces) {
  const runtime::LlamaTraceCheck check(model_, f32);
  LlamaTrace trace = FloatLlama(model_, f32).run(prompt);
  // Keeps the logits of the last token alone.
  for (TraceMatrix* matrix : {&trace.final_norm, &trace.logits}) {
    TraceMatrix last(1, matrix->cols);
    std::copy_n(matrix->row(4), matrix->cols, last.row(0));
    *matrix = last;
  }
  EXPECT_FALSE(first_failure(check.check(trace)));
  trace.layers[1][LlamaStage::gate] = {};
  expect_refused([&] { check.check(trace); }, "layer 1 silu_mul: the trace lacks gate");
  trace.layers[1][LlamaStage::silu_mul] = {};
  expect_refused([&] { check.check(trace); }, "layer 1 ffn_out: the trace lacks silu_mul");
  trace.layers[1][LlamaStage::ffn_out] = {};
  expect_refused([&] { check.check(trace); }, "lacks layer 1 ffn_out");
  trace.layers[0][LlamaStage::q] = TraceMatrix(5, 15);
  expect_refused([&] { check.check(trace); }, "layer 0 q: the trace has 5 x 15");
  trace.layers.pop_back();
  expect_refused([&] { check.check(trace); }, "has 1 layers, the model 2");
}

}  // namespace
}  // namespace greta::test::trace_check_test
