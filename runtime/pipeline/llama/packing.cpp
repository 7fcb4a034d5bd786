#include "runtime/pipeline/llama/packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <sstream>

#include "kernels/model/weight_formats.hpp"
#include "runtime/pipeline/llama/needs.hpp"

namespace greta::runtime {
namespace {

/// Matrices that the same rows are multiplied by, and that are one on the device if their formats
/// are equal. Or both matrices of all experts of a layer.
struct Matrices {
  std::vector<std::string> names;  ///< of stages that multiply by all of them, or by some
  std::int64_t cols = 0;           ///< with experts those of the first one
  std::vector<std::int64_t> rows;
  std::vector<MatrixFormat*> formats;
  bool experts = false;

  /// Returns the rows of a matrix on the device.
  std::int64_t all_rows() const {
    return experts ? rows.front() : std::accumulate(rows.begin(), rows.end(), 0L);
  }
  bool may_have_panels() const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      MatrixFormat same = *formats[i];
      same.order = formats.front()->order;
      if (!same.may_have_panels(rows[i]) || !(same == *formats.front())) return false;
    }
    return true;
  }
};

std::vector<Matrices> matrices_of(LlamaConfig& config) {
  const std::int64_t dim = config.dim, q = config.q_dim(), kv = config.kv_dim();
  std::vector<Matrices> all;
  for (std::size_t i = 0; i < config.formats.layers.size(); ++i) {
    LlamaLayerFormats& layer = config.formats.layers[i];
    all.push_back({{"qkv", "q", "k", "v"}, dim, {q, kv, kv}, {&layer.wq, &layer.wk, &layer.wv}});
    all.push_back({{"attn_out"}, q, {dim}, {&layer.wo}});
    if (config.has_experts(static_cast<std::int64_t>(i))) {
      const LlamaExperts& e = config.experts;
      all.push_back({{"experts", "expert_gate_up", "expert_down"},
                     dim,
                     {e.count * 2 * e.hidden_dim, e.count * dim},
                     {&layer.expert_gate_up, &layer.expert_down},
                     true});
    }
    const std::int64_t ffn = config.ffn_dim(static_cast<std::int64_t>(i));
    if (ffn == 0) continue;
    all.push_back({{"gate_up", "gate", "up"}, dim, {ffn, ffn}, {&layer.gate, &layer.up}});
    all.push_back({{"ffn_out", "shared_out"}, ffn, {dim}, {&layer.down}});
  }
  all.push_back({{"head"}, dim, {config.vocab}, {&config.formats.head}});
  return all;
}

/// Returns the stages that a label names: of "layer 3 k + v" k and v.
std::vector<std::string> stages_of(const std::string& label) {
  std::vector<std::string> stages;
  std::istringstream words(label);
  for (std::string word; words >> word;) {
    if (word != "+" && word != "layer" && word.find_first_not_of("0123456789") != word.npos) {
      stages.push_back(word);
    }
  }
  return stages;
}

/// Returns whether a problem reads quantised weights.
bool reads_weights(const Problem& problem) {
  const std::array operations{"quantized_gemm", "quantized_grouped_gemm", "experts", "dequantize"};
  return std::find(operations.begin(), operations.end(), problem.op) != operations.end();
}

/// A product of a pass, or what decodes its matrix, and how often a load runs it.
struct CountedProduct {
  std::string stage;  ///< one of those that it computes
  Problem problem;
  double times = 0;
};

std::vector<CountedProduct> products_of(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                        std::span<const CountedPass> passes) {
  std::vector<CountedProduct> all;
  for (const CountedPass& pass : passes) {
    LlamaOptions options;
    options.batch = pass.batch;
    options.most_tokens = std::max(options.most_tokens, pass.tokens);
    for (const auto& one : llama_operations(runtime, config, dtype, options, pass.tokens)) {
      if (!reads_weights(one.problem)) continue;
      for (const std::string& stage : stages_of(one.label)) {
        const auto same = [&](const CountedProduct& known) {
          return known.stage == stage && known.problem == one.problem;
        };
        auto known = std::find_if(all.begin(), all.end(), same);
        if (known == all.end()) known = all.insert(all.end(), {stage, one.problem, 0});
        known->times += pass.times;
      }
    }
  }
  return all;
}

/// Returns the name of the format of a product's weights. Those of experts may be numbers.
std::string weights_of(const Problem& product) {
  return product.attribute("weights", product.op == "experts" ? "dense" : "int4");
}

/// Returns whether a product reads weights in a format with scales beside them.
bool reads_format(const Problem& product, const MatrixFormat& format) {
  const bool group = format.quantised == WeightFormat::mxfp4 ||
                     std::stoll(product.attribute("group", "128")) == format.group;
  return group && weights_of(product) == kernels::traits(*format.quantised).name &&
         (product.attribute("zeros", "none") == "groups") == format.zeros;
}

/// Returns whether a product multiplies by all of these matrices, or by some of them.
bool multiplies(const CountedProduct& counted, const Matrices& matrices) {
  const auto& names = matrices.names;
  if (std::find(names.begin(), names.end(), counted.stage) == names.end()) return false;
  const Problem& product = counted.problem;
  if (!reads_format(product, *matrices.formats.front())) return false;
  if (matrices.experts) return true;  // their extents are those of the model
  const bool gated = product.attribute("epilogue", "none") == "swiglu";
  const std::int64_t rows = product.dim("n") * (gated ? 2 : 1);
  const bool parts = rows == matrices.all_rows() ||
                     std::count(matrices.rows.begin(), matrices.rows.end(), rows) > 0;
  return parts && product.dim("k") == matrices.cols;
}

/// Chooses by what is measured. A product counts by its time with rows, where that is known.
PackingChoice measured_choice(Runtime& runtime, const Matrices& matrices,
                              const std::vector<CountedProduct>& products) {
  PackingChoice rows;
  std::vector<WeightedProduct> own;
  for (const CountedProduct& one : products) {
    const auto same = [&](const WeightedProduct& known) { return known.product == one.problem; };
    if (!multiplies(one, matrices) || std::any_of(own.begin(), own.end(), same)) continue;
    const Answer answer = runtime.answer(one.problem).value();
    own.push_back({one.problem, one.times * (answer.time ? answer.time->us : 1)});
  }
  rows.reason = "rows: no pass multiplies by it";
  if (own.empty()) return rows;
  return runtime.packing(own).value();
}

/// Returns the matrices of a model, all in rows.
std::vector<Matrices> matrices_in_rows(LlamaConfig& config) {
  std::vector<Matrices> all = matrices_of(config);
  for (const Matrices& one : all) {
    for (MatrixFormat* const each : one.formats) each->panels = false;
  }
  return all;
}

bool some_may_have_panels(const std::vector<Matrices>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Matrices& one) { return one.may_have_panels(); });
}

/// Packs matrices that may have panels as `choose` says, equal ones alike.
std::vector<MatrixPacking> pack_each(const std::vector<Matrices>& all,
                                     const std::function<PackingChoice(const Matrices&)>& choose) {
  std::vector<MatrixPacking> decided;
  for (const Matrices& one : all) {
    const MatrixFormat& format = *one.formats.front();
    if (!format.quantised || in_blocks(*format.quantised)) continue;
    MatrixFormat in_order = format;
    in_order.order = 0;
    const auto same = [&](const MatrixPacking& known) {
      return known.name == one.names.front() && known.rows == one.all_rows() &&
             known.cols == one.cols && known.format == in_order;
    };
    auto known = std::find_if(decided.begin(), decided.end(), same);
    if (known == decided.end()) {
      MatrixPacking made{one.names.front(), one.all_rows(), one.cols, in_order, 0, {}};
      if (one.may_have_panels()) {
        made.choice = choose(one);
      } else {
        made.choice.reason = "rows: its parts are no whole panels of 16 rows of one format";
      }
      known = decided.insert(decided.end(), std::move(made));
    }
    ++known->matrices;
    const bool panels =
        known->choice.packing == kernels::WeightPacking::panels && one.may_have_panels();
    for (MatrixFormat* const each : one.formats) each->panels = panels;
  }
  return decided;
}

}  // namespace

bool may_be_packed(const Problem& product) {
  if (!reads_weights(product)) return false;
  const auto format = kernels::weight_format_from_string(weights_of(product));
  return format && !in_blocks(*format);
}

std::vector<MatrixPacking> pack_in_panels(LlamaConfig& config) {
  const std::vector<Matrices> all = matrices_in_rows(config);
  if (!some_may_have_panels(all)) {
    throw Error(Failure{Status::invalid_argument,
                        "no matrix of the model has rows of int4, int8 or mxfp4 that are whole "
                        "panels of 16",
                        {}});
  }
  return pack_each(all, [](const Matrices&) {
    PackingChoice forced;
    forced.packing = kernels::WeightPacking::panels;
    forced.reason = "panels: forced";
    return forced;
  });
}

std::vector<MatrixPacking> pack_matrices(Runtime& runtime, LlamaConfig& config, DType dtype,
                                         std::span<const CountedPass> passes, WeightsAs how) {
  if (how == WeightsAs::panels) return pack_in_panels(config);
  const std::vector<Matrices> all = matrices_in_rows(config);
  if (how == WeightsAs::rows || !some_may_have_panels(all)) return {};
  const auto products = products_of(runtime, config, dtype, passes);
  return pack_each(all,
                   [&](const Matrices& one) { return measured_choice(runtime, one, products); });
}

}  // namespace greta::runtime
