#include "runtime/pipeline/compute/experts.hpp"

namespace greta::runtime {
namespace {

GemmOptions by_rows() {
  GemmOptions options;
  options.layout = Layout::nt;
  return options;
}

}  // namespace

ExpertsResults record(Pipeline& pipeline, const Experts& chain) {
  const std::int64_t rows = chain.x.shape()[0], dim = chain.x.shape()[1];
  const std::int64_t experts = chain.router.shape()[0], hidden = chain.down.shape()[2];
  const std::int64_t assigned = rows * chain.top_k;
  const DType type = chain.x.dtype();
  const auto label = [&](const char* name) { pipeline.label(chain.prefix + name); };
  const auto make = [&](DType dtype, std::int64_t count, std::int64_t cols) {
    return pipeline.temporary(dtype, {count, cols});
  };
  ExpertsResults results;
  label("router");
  results.logits = make(DType::f32, rows, experts);
  pipeline.gemm(chain.x, chain.router, results.logits, by_rows()).value();
  label("route");
  results.ids = make(DType::i32, rows, chain.top_k);
  results.weights = make(DType::f32, rows, chain.top_k);
  RouteOptions options;
  options.renormalise = chain.renormalise;
  pipeline.route(results.logits, results.ids, results.weights, options).value();
  label("permute");
  results.rows = make(type, assigned, dim);
  results.places = make(DType::i32, rows, chain.top_k);
  const Tensor ends = pipeline.temporary(DType::i32, {experts});
  pipeline.permute(chain.x, results.ids, results.rows, ends, results.places).value();
  label("expert_gate_up");
  results.gate_up = make(type, assigned, 2 * hidden);
  pipeline.grouped_gemm(results.rows, chain.gate_up, ends, results.gate_up).value();
  label("expert_silu_mul");
  results.gated = make(type, assigned, hidden);
  pipeline.silu_mul(results.gate_up, results.gated).value();
  label("expert_down");
  results.down = make(type, assigned, dim);
  pipeline.grouped_gemm(results.gated, chain.down, ends, results.down).value();
  label("unpermute");
  results.out = make(type, rows, dim);
  pipeline.unpermute(results.down, results.places, results.weights, results.out).value();
  return results;
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
