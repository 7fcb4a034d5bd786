#include "runtime/pipeline/compute/experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/chains/chains.hpp"
#include "runtime/pipeline/compute/chain_operands.hpp"
#include "runtime/pipeline/compute/prepared.hpp"

namespace greta::runtime {
namespace {

GemmOptions by_rows() {
  GemmOptions options;
  options.layout = Layout::nt;
  return options;
}

/// Returns the elements of an expert's h.
std::int64_t hidden_of(const Experts& chain) {
  return chain.gate_up.rows() / chain.router.shape()[0] / 2;
}

/// Returns rows of all experts as [experts, rows, columns].
Tensor by_expert(const Experts& chain, const Tensor& rows) {
  if (!rows) return {};
  const std::int64_t experts = chain.router.shape()[0];
  return rows.reshape({experts, rows.shape()[0] / experts, rows.shape()[1]});
}

/// Records the steps of a mixture of experts one after the other.
class ExpertsRecorder {
 public:
  ExpertsRecorder(Pipeline& pipeline, const Experts& chain)
      : pipeline_(pipeline),
        chain_(chain),
        rows_(chain.x.shape()[0]),
        dim_(chain.x.shape()[1]),
        hidden_(hidden_of(chain)),
        gate_up_(by_expert(chain, chain.gate_up.values)),
        down_(by_expert(chain, chain.down.values)) {}

  ExpertsResults record() {
    route();
    const std::string chosen = alternative();
    if (chosen == "fused") {
      fuse();
    } else {
      as_stored_ = chosen == "quantised" || chosen == "scaled";
      multiply(chosen != "parts");
    }
    return std::move(results_);
  }

 private:
  /// Returns the alternative to record. The operation experts computes the scales of its rows
  /// itself, so rows with given scales are quantised before products; a rule can't ask for it then.
  std::string alternative() {
    const Problem problem = chain_of(chain_);
    const auto& scaled = chain_.gate_up.format.scaled;
    if (!scaled || !scaled->given_input) return pipeline_.choose(problem).value().config.variant;
    const Answer answer = pipeline_.look_up(problem).value();
    if (answer.origin == LookupOrigin::forced && answer.config.variant == "fused") {
      throw Error(refused(fmt::format("rule \"{}\"", answer.rule),
                          problem.key() +
                              ": the model gives scales of activations, and the operation experts "
                              "computes its own; allowed: scaled"));
    }
    return pipeline_.choose(problem, {{"fused", "scaled"}}).value().config.variant;
  }

  void label(const char* name) { pipeline_.label(chain_.prefix + name); }
  Tensor make(DType dtype, std::int64_t rows, std::int64_t cols) {
    return pipeline_.temporary(dtype, {rows, cols});
  }

  void route() {
    label("router");
    results_.logits = make(DType::f32, rows_, chain_.router.shape()[0]);
    pipeline_.gemm(chain_.x, chain_.router, results_.logits, by_rows()).value();
    label("route");
    results_.ids = make(DType::i32, rows_, chain_.top_k);
    results_.weights = make(DType::f32, rows_, chain_.top_k);
    RouteOptions options;
    options.renormalise = chain_.renormalise;
    pipeline_.route(results_.logits, results_.ids, results_.weights, options).value();
  }

  /// Returns the scales of a matrix as the operation experts takes them.
  Tensor scales_of(const WeightMatrix& matrix) const {
    return matrix.format.scaled ? matrix.scales : by_expert(chain_, matrix.scales);
  }

  /// Records the operation experts, which takes some rows at a time.
  void fuse() {
    label("experts");
    results_.out = make(chain_.x.dtype(), rows_, dim_);
    ExpertsOptions options;
    options.format = chain_.gate_up.format.quantised;
    options.down_format = chain_.down.format.quantised;
    options.panels = chain_.gate_up.format.panels;
    if (const auto& scaled = chain_.gate_up.format.scaled) {
      options.scaled = ScaledGemmOptions{scaled->numbers, sharing_of(*scaled)};
    }
    options.gate_up_scales = scales_of(chain_.gate_up);
    options.down_scales = scales_of(chain_.down);
    options.gate_up_zeros = by_expert(chain_, chain_.gate_up.zeros);
    options.down_zeros = by_expert(chain_, chain_.down.zeros);
    for (std::int64_t first = 0; first < rows_; first += most_expert_rows) {
      const std::int64_t count = std::min(most_expert_rows, rows_ - first);
      const auto part = [&](const Tensor& all) { return all.slice(0, first, count); };
      pipeline_
          .experts(part(chain_.x), part(results_.ids), part(results_.weights), gate_up_, down_,
                   part(results_.out), options)
          .value();
    }
  }

  /// Returns an operand [experts, rows, cols] of grouped products. A quantised one is decoded to
  /// memory that the next matrix reuses, unless products take it as it is stored.
  Tensor operand(const char* name, const WeightMatrix& matrix, const Tensor& by_expert,
                 std::int64_t cols) {
    if (as_stored_ || !matrix.quantised()) return by_expert;
    label(name);
    const Tensor rows = make(chain_.x.dtype(), matrix.rows(), cols);
    pipeline_
        .dequantize(matrix.values, rows,
                    {.format = *matrix.format.quantised,
                     .scales = matrix.scales,
                     .zeros = matrix.zeros,
                     .panels = matrix.format.panels})
        .value();
    return runtime::by_expert(chain_, rows);
  }

  /// Records out = the product of rows of experts with their parts of a matrix, whose operand() is
  /// `b`.
  void multiply_rows(const char* name, const Tensor& a, const WeightMatrix& matrix, const Tensor& b,
                     const Tensor& out, Activation activation) {
    label(name);
    if (const auto& scaled = matrix.format.scaled) {
      const ScaledRows rows = quantise_rows(pipeline_, a, a.shape()[1], matrix.input);
      ScaledGroupedGemmOptions options;
      options.format = scaled->numbers;
      options.scales = sharing_of(*scaled);
      options.activation = activation;
      pipeline_.scaled_grouped_gemm(rows.codes, b, rows.scales, matrix.scales, ends_, out, options)
          .value();
    } else if (as_stored_) {
      pipeline_
          .quantized_grouped_gemm(a, b, ends_, out,
                                  {.format = *matrix.format.quantised,
                                   .scales = by_expert(chain_, matrix.scales),
                                   .zeros = by_expert(chain_, matrix.zeros),
                                   .activation = activation,
                                   .panels = matrix.format.panels})
          .value();
    } else {
      pipeline_.grouped_gemm(a, b, ends_, out, Layout::nt, activation).value();
    }
  }

  /// Records grouped products of the rows in the order of their experts.
  void multiply(bool gated) {
    const DType type = chain_.x.dtype();
    const std::int64_t assigned = rows_ * chain_.top_k;
    label("permute");
    results_.rows = make(type, assigned, dim_);
    results_.places = make(DType::i32, rows_, chain_.top_k);
    ends_ = pipeline_.temporary(DType::i32, {chain_.router.shape()[0]});
    pipeline_.permute(chain_.x, results_.ids, results_.rows, ends_, results_.places).value();
    const Tensor gate_up = operand("dequantize expert_gate_up", chain_.gate_up, gate_up_, dim_);
    results_.gated = make(type, assigned, hidden_);
    if (gated) {
      multiply_rows("expert_gate_up + expert_silu_mul", results_.rows, chain_.gate_up, gate_up,
                    results_.gated, Activation::swiglu);
    } else {
      results_.gate_up = make(type, assigned, 2 * hidden_);
      multiply_rows("expert_gate_up", results_.rows, chain_.gate_up, gate_up, results_.gate_up,
                    Activation::none);
      label("expert_silu_mul");
      pipeline_.silu_mul(results_.gate_up, results_.gated).value();
    }
    const Tensor down = operand("dequantize expert_down", chain_.down, down_, hidden_);
    results_.down = make(type, assigned, dim_);
    multiply_rows("expert_down", results_.gated, chain_.down, down, results_.down,
                  Activation::none);
    label("unpermute");
    results_.out = make(type, rows_, dim_);
    pipeline_.unpermute(results_.down, results_.places, results_.weights, results_.out).value();
  }

  Pipeline& pipeline_;
  const Experts& chain_;
  std::int64_t rows_, dim_, hidden_;
  Tensor gate_up_, down_;   ///< [experts, rows, columns or bytes]
  Tensor ends_;             ///< i32 [experts]: the row after each expert's last
  bool as_stored_ = false;  ///< grouped products take quantised and scaled matrices as they are
  ExpertsResults results_;
};

}  // namespace

Problem chain_of(const Experts& chain) {
  check_rank("expert_ffn", "x", chain.x, 2);
  check_rank("expert_ffn", "gate_up", chain.gate_up.values, 2);
  return expert_ffn_chain(chain.x.dtype(), {chain.x.shape()[0], chain.router.shape()[0],
                                            chain.top_k, chain.x.shape()[1], hidden_of(chain),
                                            chain.gate_up.format, chain.down.format});
}

ExpertsResults record(Pipeline& pipeline, const Experts& chain) {
  return ExpertsRecorder(pipeline, chain).record();
}

RowGateResults record(Pipeline& pipeline, const RowGate& chain) {
  const std::int64_t rows = chain.x.shape()[0];
  const auto label = [&](const char* name) { pipeline.label(chain.prefix + name); };
  RowGateResults results;
  label("shared_router");
  results.logits = pipeline.temporary(DType::f32, {rows, 1});
  pipeline.gemm(chain.x, chain.router, results.logits, by_rows()).value();
  // One expert of one: its weight is the sigmoid of its logit.
  label("shared_route");
  results.weights = pipeline.temporary(DType::f32, {rows, 1});
  const Tensor ids = pipeline.temporary(DType::i32, {rows, 1});
  RouteOptions options;
  options.score = ExpertScore::sigmoid;
  options.renormalise = false;
  pipeline.route(results.logits, ids, results.weights, options).value();
  // Each row is the only one of its own sum.
  label("shared_scale");
  results.out = pipeline.temporary(chain.y.dtype(), chain.y.shape());
  const Tensor own = chain.numbers.slice(0, 0, rows).reshape({rows, 1});
  pipeline.unpermute(chain.y, own, results.weights, results.out).value();
  return results;
}

}  // namespace greta::runtime
