#include "runtime/pipeline/compute/operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "kernels/catalog.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "runtime/pipeline/compute/request.hpp"

namespace greta::runtime {
namespace {

Problem rows_problem(const char* op, const Tensor& x, const Tensor& out) {
  return problem_of(op, x.dtype(), out.dtype(), {{"rows", rows_of(x)}, {"cols", cols_of(x)}});
}

void set_strides(Problem& problem, const Tensor& x, const Tensor& y) {
  set_stride(problem, "x_stride", x);
  set_stride(problem, "y_stride", y);
}

/// Sets scale and offset of a norm. `full` is the operation's default. Fails for a bias without a
/// weight.
Result<void> set_affine(Problem& problem, const NormOptions& options, std::string_view full) {
  if (options.bias && (!options.weight || full == "weight")) {
    return refused(problem.op,
                   full == "weight" ? "it takes no bias" : "a bias needs a weight beside it");
  }
  const std::string_view affine = options.bias ? "weight_bias" : options.weight ? "weight" : "none";
  if (affine != full) set(problem, "affine", std::string(affine));
  if (options.epsilon != 1e-5F) set(problem, "epsilon", number(options.epsilon));
  return {};
}

}  // namespace

Result<void> Operations::start(const Problem& problem, std::span<const Tensor> operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]) continue;
    const auto specs = catalog().at(problem.op).tensors(problem);
    return refused(problem.op, specs.at(i).name + " is missing");
  }
  return run(problem, operands);
}

Result<void> Operations::add(const Tensor& a, const Tensor& b, const Tensor& out) {
  return start(rows_problem("add", a, out), std::array{a, b, out});
}

Result<void> Operations::silu_mul(const Tensor& gate, const Tensor& up, const Tensor& out) {
  return start(rows_problem("silu_mul", gate, out), std::array{gate, up, out});
}

Result<void> Operations::silu_mul(const Tensor& x, const Tensor& out) {
  Problem problem = problem_of("silu_mul", x.dtype(), out.dtype(),
                               {{"rows", rows_of(out)}, {"cols", cols_of(out)}});
  set(problem, "layout", "packed");
  return start(problem, std::array{x, out});
}

Result<void> Operations::gelu(const Tensor& x, const Tensor& out, GeluForm form) {
  Problem problem = rows_problem("gelu", x, out);
  if (form == GeluForm::erf) set(problem, "form", "erf");
  return start(problem, std::array{x, out});
}

Result<void> Operations::rope(const Tensor& x, const Tensor& positions, const Tensor& table,
                              const Tensor& out, RopePairs pairs) {
  if (x && x.shape().rank() != 3) return bad_rank("rope", "x", x, "[tokens, heads, dim]");
  if (!x) return refused("rope", "x is missing");
  Problem problem = problem_of("rope", x.dtype(), out.dtype(),
                               {{"tokens", x.shape()[0]},
                                {"heads", x.shape()[1]},
                                {"dim", x.shape()[2]},
                                {"positions", rows_of(table)}});
  if (pairs == RopePairs::half) set(problem, "style", "half");
  const bool in_place = out.same_view(x);
  if (in_place) set(problem, "place", "in");
  set_stride(problem, "x_stride", x, 2);
  const std::array operands{x, positions, table, out};
  return start(problem, std::span(operands).first(in_place ? 3 : 4));
}

Result<void> Operations::kv_update(const Tensor& k, const Tensor& v, const Tensor& position,
                                   const Tensor& k_cache, const Tensor& v_cache,
                                   const Tensor& block_table) {
  const std::size_t rank = block_table ? 4 : 3;
  if (k_cache.shape().rank() != rank) {
    return bad_rank("kv_update", "K_cache", k_cache,
                    block_table ? "[pages, kv_heads, page, dim]" : "[kv_heads, capacity, dim]");
  }
  const std::int64_t run = k_cache.shape()[rank - 2];
  if (k.shape().rank() != 3) return bad_rank("kv_update", "K", k, "[tokens, kv_heads, dim]");
  Problem problem = problem_of("kv_update", k.dtype(), k_cache.dtype(),
                               {{"tokens", k.shape()[0]},
                                {"kv_heads", k_cache.shape()[rank - 3]},
                                {"dim", k_cache.shape()[rank - 1]},
                                {"capacity", block_table ? cols_of(block_table) * run : run}});
  set_v_dim(problem, cols_of(v_cache));
  set_stride(problem, "kv_stride", k, 2);
  if (block_table) set(problem, "page_size", std::to_string(run));
  Given operands;
  for (const Tensor& each : {k, v, position}) operands.add(each);
  operands.add_if(block_table);
  for (const Tensor& each : {k_cache, v_cache}) operands.add(each);
  return start(problem, operands);
}

Result<void> Operations::rope_append(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const Tensor& positions, const Tensor& table,
                                     const Tensor& slots, const Tensor& k_cache,
                                     const Tensor& v_cache, const Tensor& out,
                                     const RopeAppendOptions& options) {
  const std::size_t rank = q.shape().rank(), cache_rank = k_cache.shape().rank();
  if (rank < 3) return bad_rank("rope_append", "Q", q, "[batch, tokens, heads, dim]");
  if (k.shape().rank() != rank) {
    return bad_rank("rope_append", "K", k, "[batch, tokens, kv_heads, dim]");
  }
  if (cache_rank < 3 || (options.block_table && cache_rank != 4)) {
    return bad_rank(
        "rope_append", "K_cache", k_cache,
        options.block_table ? "[pages, kv_heads, page, dim]" : "[batch, kv_heads, capacity, dim]");
  }
  if (static_cast<bool>(options.q_norm) != static_cast<bool>(options.k_norm)) {
    return refused("rope_append", "weights of the norms of both q and k, or of neither");
  }
  const std::int64_t run = k_cache.shape()[cache_rank - 2];
  Problem problem =
      problem_of("rope_append", q.dtype(), k_cache.dtype(),
                 {{"batch", rank == 4 ? q.shape()[0] : 1},
                  {"tokens", q.shape()[rank - 3]},
                  {"heads", q.shape()[rank - 2]},
                  {"kv_heads", k.shape()[rank - 2]},
                  {"dim", q.shape()[rank - 1]},
                  {"positions", rows_of(table)},
                  {"capacity", options.block_table ? cols_of(options.block_table) * run : run}});
  if (options.q_norm) {
    set(problem, "norm", "rms");
    if (options.epsilon != 1e-5F) set(problem, "epsilon", number(options.epsilon));
  }
  if (options.pairs == RopePairs::half) set(problem, "style", "half");
  const bool in_place = out.same_view(q);
  if (in_place) set(problem, "place", "in");
  set_stride(problem, "q_stride", q, 2);
  set_stride(problem, "kv_stride", k, 2);
  if (options.block_table) set(problem, "page_size", std::to_string(run));
  Given operands;
  for (const Tensor& each : {q, k, v}) operands.add(each);
  operands.add_if(options.q_norm);
  operands.add_if(options.k_norm);
  for (const Tensor& each : {positions, table, slots}) operands.add(each);
  operands.add_if(options.block_table);
  for (const Tensor& each : {k_cache, v_cache}) operands.add(each);
  if (!in_place) operands.add(out);
  return start(problem, operands);
}

Result<void> Operations::embedding(const Tensor& ids, const Tensor& table, const Tensor& out) {
  const Problem problem = problem_of("embedding", table.dtype(), out.dtype(),
                                     {{"tokens", ids.shape().elements()},
                                      {"vocabulary", rows_of(table)},
                                      {"dim", cols_of(table)}});
  return start(problem, std::array{ids, table, out});
}

Result<void> Operations::gather_columns(const Tensor& ids, const Tensor& x, const Tensor& out) {
  const Problem problem =
      problem_of("gather_columns", x.dtype(), out.dtype(),
                 {{"rows", rows_of(x)}, {"width", cols_of(x)}, {"cols", ids.shape().elements()}});
  return start(problem, std::array{ids, x, out});
}

Result<void> Operations::argmax(const Tensor& x, const Tensor& index) {
  Problem problem =
      problem_of("argmax", x.dtype(), DType::i32, {{"rows", rows_of(x)}, {"cols", cols_of(x)}});
  set_stride(problem, "x_stride", x);
  return start(problem, std::array{x, index});
}

Result<void> Operations::sample(const Tensor& x, const Tensor& settings, const Tensor& seeds,
                                const Tensor& token, const SampleOptions& options) {
  if (static_cast<bool>(options.penalties) != static_cast<bool>(options.history)) {
    return refused("sample", "penalties need a history beside them, and a history penalties");
  }
  Problem problem =
      problem_of("sample", x.dtype(), DType::i32, {{"rows", rows_of(x)}, {"cols", cols_of(x)}});
  if (options.history) problem.dims.emplace_back("history", cols_of(options.history));
  set_stride(problem, "x_stride", x);
  Given operands;
  for (const Tensor& each : {x, settings, seeds}) operands.add(each);
  operands.add_if(options.penalties);
  operands.add_if(options.history);
  operands.add(token);
  return start(problem, operands);
}

Result<void> Operations::route(const Tensor& logits, const Tensor& ids, const Tensor& weights,
                               const RouteOptions& options) {
  Problem problem = problem_of(
      "route", logits.dtype(), DType::f32,
      {{"tokens", rows_of(logits)}, {"experts", cols_of(logits)}, {"top_k", cols_of(ids)}});
  if (options.score == ExpertScore::sigmoid) set(problem, "score", "sigmoid");
  if (!options.renormalise) set(problem, "renormalise", "no");
  if (options.bias) set(problem, "bias", "expert");
  if (options.scale != 1) set(problem, "scale", number(options.scale));
  if (options.groups != 1) set(problem, "groups", std::to_string(options.groups));
  if (options.top_groups != 1) set(problem, "top_groups", std::to_string(options.top_groups));
  Given operands;
  operands.add(logits);
  operands.add_if(options.bias);
  for (const Tensor& each : {ids, weights}) operands.add(each);
  return start(problem, operands);
}

Result<void> Operations::permute(const Tensor& x, const Tensor& ids, const Tensor& out,
                                 const Tensor& groups, const Tensor& places, std::int64_t block) {
  Problem problem = problem_of("permute", x.dtype(), out.dtype(),
                               {{"tokens", rows_of(x)},
                                {"experts", groups.shape().elements()},
                                {"top_k", cols_of(ids)},
                                {"dim", cols_of(x)}});
  if (out && out.shape().rank() == 3) problem.dims.emplace_back("capacity", out.shape()[1]);
  if (block != 1) set(problem, "block", std::to_string(block));
  return start(problem, std::array{x, ids, out, groups, places});
}

Result<void> Operations::unpermute(const Tensor& y, const Tensor& places, const Tensor& weights,
                                   const Tensor& out) {
  const Problem problem = problem_of("unpermute", y.dtype(), out.dtype(),
                                     {{"tokens", rows_of(out)},
                                      {"rows", rows_of(y)},
                                      {"top_k", cols_of(places)},
                                      {"dim", cols_of(y)}});
  return start(problem, std::array{y, places, weights, out});
}

namespace {

/// Unlike that of products, the attribute has no default that says what shares a scale.
void set_scaled_experts(Problem& problem, const ScaledGemmOptions& options) {
  if (options.format != kernels::ByteFormat::e4m3) {
    set(problem, "format", std::string(kernels::to_string(options.format)));
  }
  set(problem, "scales",
      options.scales == ScaleSharing::tensor ? "tensor"
      : options.scales == ScaleSharing::row  ? "row"
      : options.scales == ScaleSharing::mx   ? "mx"  // which the operation refuses
                                             : "block");
}

}  // namespace

Result<void> Operations::experts(const Tensor& x, const Tensor& ids, const Tensor& weights,
                                 const Tensor& gate_up, const Tensor& down, const Tensor& out,
                                 const ExpertsOptions& options) {
  if (gate_up && gate_up.shape().rank() != 3) {
    return bad_rank("experts", "gate_up", gate_up, "[experts, 2 hidden, dim]");
  }
  if (down && down.shape().rank() != 3) {
    return bad_rank("experts", "down", down, "[experts, dim, hidden]");
  }
  if (options.format && options.scaled) {
    return refused("experts", "matrices are quantised or scaled, not both");
  }
  const bool scales = options.format && !kernels::in_blocks(*options.format);
  for (const Tensor& one : {options.gate_up_scales, options.down_scales}) {
    if (static_cast<bool>(one) == (scales || options.scaled)) continue;
    return refused("experts", one ? "scales are given, but the matrices have none beside them"
                              : options.scaled
                                  ? "scaled matrices need scales of both"
                                  : "int4, int8 and mxfp4 need scales of both matrices");
  }
  const bool zeros = static_cast<bool>(options.gate_up_zeros);
  if (zeros != static_cast<bool>(options.down_zeros) || (zeros && !scales)) {
    return refused("experts", "zero points of both matrices, with int4 and int8, or of neither");
  }
  Problem problem = problem_of("experts", x.dtype(), out.dtype(),
                               {{"tokens", rows_of(x)},
                                {"experts", down ? down.shape()[0] : 1},
                                {"top_k", cols_of(ids)},
                                {"dim", cols_of(x)},
                                {"hidden", gate_up ? gate_up.shape()[1] / 2 : 1}});
  if (options.format) {
    set(problem, "weights", std::string(kernels::traits(*options.format).name));
  }
  if (scales && kernels::only_group(*options.format) == 0) {
    const std::int64_t groups = std::max<std::int64_t>(1, cols_of(options.gate_up_scales));
    if (cols_of(x) % groups != 0) {
      return refused("experts",
                     fmt::format("{} groups of scales don't divide dim, {}", groups, cols_of(x)));
    }
    if (cols_of(x) / groups != 128) set(problem, "group", std::to_string(cols_of(x) / groups));
  }
  if (zeros) set(problem, "zeros", "groups");
  if (options.scaled) set_scaled_experts(problem, *options.scaled);
  if (options.down_format && options.down_format != options.format) {
    set(problem, "down_weights", std::string(kernels::traits(*options.down_format).name));
  }
  if (options.panels) set(problem, "packing", "panels");
  Given given;
  for (const Tensor& one : {x, ids, weights, gate_up}) given.add(one);
  given.add_if(options.gate_up_scales);
  given.add_if(options.gate_up_zeros);
  given.add(down);
  given.add_if(options.down_scales);
  given.add_if(options.down_zeros);
  given.add(out);
  return start(problem, given);
}

Result<void> Operations::softmax(const Tensor& x, const Tensor& y, const SoftmaxOptions& options) {
  if (options.added && options.mask != SoftmaxMask::none) {
    return refused("softmax", "a mask that is added, or a causal one, not both");
  }
  Problem problem = rows_problem("softmax", x, y);
  if (options.scale != 1) set(problem, "scale", number(options.scale));
  if (options.mask == SoftmaxMask::causal) set(problem, "mask", "causal");
  if (options.added) set(problem, "mask", "additive");
  const bool in_place = x && y.same_view(x);
  if (in_place) set(problem, "place", "in");
  set_strides(problem, x, y);
  Given given;
  given.add(x);
  given.add_if(options.added);
  if (!in_place) given.add(y);
  return start(problem, given);
}

Result<void> Operations::layernorm(const Tensor& x, const Tensor& y, const NormOptions& options) {
  Problem problem = rows_problem("layernorm", x, y);
  if (auto done = set_affine(problem, options, "weight_bias"); !done) return done;
  set_strides(problem, x, y);
  Given given;
  given.add(x);
  given.add_if(options.weight);
  given.add_if(options.bias);
  given.add(y);
  return start(problem, given);
}

Result<void> Operations::rmsnorm(const Tensor& x, const Tensor& y, const NormOptions& options) {
  Problem problem = rows_problem("rmsnorm", x, y);
  if (auto done = set_affine(problem, options, "weight"); !done) return done;
  set_strides(problem, x, y);
  Given given;
  given.add(x);
  given.add_if(options.weight);
  given.add(y);
  return start(problem, given);
}

Result<void> Operations::add_rmsnorm(const Tensor& x, const Tensor& residual, const Tensor& sum,
                                     const Tensor& y, const NormOptions& options) {
  Problem problem = rows_problem("add_rmsnorm", x, y);
  if (auto done = set_affine(problem, options, "weight"); !done) return done;
  set_strides(problem, x, y);
  Given given;
  given.add(x);
  given.add(residual);
  given.add_if(options.weight);
  given.add(sum);
  given.add(y);
  return start(problem, given);
}

Result<void> Operations::layernorm_rmsnorm(const Tensor& x, const Tensor& y, const Tensor& gain,
                                           const NormOptions& options) {
  Problem problem = rows_problem("layernorm_rmsnorm", x, y);
  if (auto done = set_affine(problem, options, "weight_bias"); !done) return done;
  set_strides(problem, x, y);
  if (static_cast<bool>(gain) != static_cast<bool>(options.weight)) {
    return refused("layernorm_rmsnorm", "a gain, exactly where there is a weight");
  }
  Given given;
  given.add(x);
  given.add_if(options.weight);
  given.add_if(options.bias);
  given.add_if(gain);
  given.add(y);
  return start(problem, given);
}

Result<void> check_copy(const Tensor& to, const Tensor& from) {
  if (!to || !from) return refused("copy", to ? "from is missing" : "to is missing");
  const bool alike = to.dtype() == from.dtype() && to.shape().elements() == from.shape().elements();
  if (!alike || !to.contiguous() || !from.contiguous()) {
    return refused("copy", fmt::format("{} to {}: {}", from.text(), to.text(),
                                       alike ? "both must be contiguous"
                                             : "types and numbers of elements must agree"));
  }
  if (to.overlaps(from)) return refused("copy", "source and target overlap");
  return {};
}

Result<void> record_copy(Stream& stream, const Tensor& to, const Tensor& from) {
  const Storage &target = *to.storage(), &origin = *from.storage();
  return stream.copy(*target.buffer, target.offset + to.offset(), *origin.buffer,
                     origin.offset + from.offset(), from.bytes());
}

}  // namespace greta::runtime
