#include "runtime/pipeline/compute/operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

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

std::string epilogue(const GemmOptions& options) {
  std::string list;
  const auto add = [&list](const char* word) {
    list += (list.empty() ? "" : ",") + std::string(word);
  };
  if (options.bias) add("bias");
  if (options.residual) add("residual");
  if (options.activation == Activation::silu) add("silu");
  if (options.activation == Activation::gelu) add("gelu");
  if (options.activation == Activation::swiglu) add("swiglu");
  if (options.activation == Activation::geglu) add("geglu");
  return list;
}

/// Sets where a matrix of gemm is: its leading dimension, the distance of a batch's matrices, and
/// how all of these are aligned. `tensors`: those that are placed alike.
void set_matrix(Problem& problem, char matrix, std::int64_t batch,
                std::initializer_list<Tensor> tensors) {
  const Tensor& first = *tensors.begin();
  if (!first) return;  // which start() reports
  const std::size_t rank = first.shape().rank();
  const std::string of(1, matrix);
  if (batch == 1 || rank < 3) {
    set_stride(problem, ("ld" + of).c_str(), first);
  } else {
    const std::int64_t lines = first.shape()[rank - 2], cols = cols_of(first);
    const std::int64_t stride = lines > 1 ? first.stride(rank - 2) : cols;
    if (stride != cols) set(problem, ("ld" + of).c_str(), std::to_string(stride));
    if (first.stride(0) != lines * stride)
      set(problem, (of + "_batch_stride").c_str(), std::to_string(first.stride(0)));
  }
  std::size_t places = alignment_of(first.dtype());
  for (const Tensor& tensor : tensors) places |= tensor ? tensor.place() : 0;
  const std::size_t aligned = std::size_t{1} << std::countr_zero(places);
  const auto element = bytes_of(first.dtype(), std::size_t{1});
  if (aligned < alignment_of(first.dtype()) && aligned >= element) {
    set(problem, (of + "_offset").c_str(), std::to_string(aligned / element));
  }
}

void set_layout(Problem& problem, Layout layout) {
  static constexpr std::array<const char*, 4> names{"nn", "nt", "tn", "tt"};
  if (layout != Layout::nn) set(problem, "layout", names.at(static_cast<std::size_t>(layout)));
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

Result<void> Operations::gemm(const Tensor& a, const Tensor& b, const Tensor& c,
                              const GemmOptions& options) {
  const bool a_transposed = options.layout == Layout::tn || options.layout == Layout::tt;
  const bool b_transposed = options.layout == Layout::nt || options.layout == Layout::tt;
  const bool batched = b && b.shape().rank() == 3;
  if (a && batched && a.shape().rank() != 3) {
    return bad_rank("gemm", "A", a, a_transposed ? "[batch, k, m]" : "[batch, m, k]");
  }
  if (a && a_transposed && !batched && a.shape().rank() != 2) {
    return bad_rank("gemm", "A", a, "[k, m]");
  }
  if (b && b.shape().rank() != 2 && !batched) {
    return bad_rank("gemm", "B", b, b_transposed ? "[n, k]" : "[k, n]");
  }
  const std::int64_t batch = batched ? b.shape()[0] : 1;
  const bool gated =
      options.activation == Activation::swiglu || options.activation == Activation::geglu;
  const std::int64_t products = !b ? 1 : b.shape()[b.shape().rank() - (b_transposed ? 2 : 1)];
  const std::int64_t n = gated ? products / 2 : products;
  if (gated && products % 2 != 0) {
    return refused(
        "gemm",
        fmt::format("B has {} columns, but gates need as many others beside them", products));
  }
  Problem problem = problem_of("gemm", a.dtype(), c.dtype(),
                               {{"m", a_transposed ? cols_of(a) : rows_of(a) / batch},
                                {"n", n},
                                {"k", a_transposed ? rows_of(a) / batch : cols_of(a)}});
  if (batch > 1) problem.dims.emplace_back("batch", batch);
  set_layout(problem, options.layout);
  if (std::string list = epilogue(options); !list.empty())
    set(problem, "epilogue", std::move(list));
  if (options.norm_weight) {
    set(problem, "prologue", "rmsnorm");
    if (options.norm_epsilon != 1e-5F) set(problem, "epsilon", number(options.norm_epsilon));
  }
  if (options.alpha != 1) set(problem, "alpha", number(options.alpha));
  if (options.beta != 0) set(problem, "beta", number(options.beta));
  if (options.tf32x3) set(problem, "math", "tf32x3");
  set_matrix(problem, 'a', batch, {a});
  set_matrix(problem, 'b', batch, {b});
  set_matrix(problem, 'c', batch, {c, options.residual});
  Given given;
  given.add(a);
  given.add(b);
  given.add_if(options.norm_weight);
  given.add_if(options.bias);
  given.add_if(options.residual);
  given.add(c);
  return start(problem, given);
}

Result<void> Operations::grouped_gemm(const Tensor& a, const Tensor& b, const Tensor& groups,
                                      const Tensor& c, Layout layout) {
  const bool b_transposed = layout == Layout::nt;
  if (layout == Layout::tn || layout == Layout::tt)
    return refused("grouped_gemm", "the layout must be nn or nt");
  if (b && b.shape().rank() != 3) {
    return bad_rank("grouped_gemm", "B", b, b_transposed ? "[groups, n, k]" : "[groups, k, n]");
  }
  const std::size_t rank = a ? a.shape().rank() : 2;
  if (rank != 2 && rank != 3) {
    return bad_rank("grouped_gemm", "A", a, "[rows, k] or [groups, most rows, k]");
  }
  Problem problem = problem_of("grouped_gemm", a.dtype(), c.dtype(),
                               {{"groups", b ? b.shape()[0] : 1},
                                {"m", a ? a.shape()[rank - 2] : 1},
                                {"n", b ? b.shape()[b_transposed ? 1 : 2] : 1},
                                {"k", cols_of(a)}});
  if (rank == 3) set(problem, "form", "masked");
  if (!b_transposed) set(problem, "layout", "nn");
  return start(problem, std::array{a, b, groups, c});
}

Result<void> Operations::quantized_gemm(const Tensor& a, const Tensor& b, const Tensor& c,
                                        const QuantizedGemmOptions& options) {
  if (b && b.shape().rank() != 2) return bad_rank("quantized_gemm", "B", b, "[n, bytes of a row]");
  const std::int64_t k = cols_of(a);
  Problem problem = problem_of("quantized_gemm", a.dtype(), c.dtype(),
                               {{"m", rows_of(a)}, {"n", b ? b.shape()[0] : 1}, {"k", k}});
  if (options.format != kernels::WeightFormat::int4) {
    set(problem, "weights", std::string(kernels::traits(options.format).name));
  }
  if (kernels::in_blocks(options.format)) {
    if (options.scales || options.zeros) {
      return refused("quantized_gemm", "blocks of weights hold their scales: none must be given");
    }
    return start(problem, std::array{a, b, c});
  }
  if (!options.scales) return refused("quantized_gemm", "int4 and int8 need scales");
  const std::int64_t groups = std::max<std::int64_t>(1, cols_of(options.scales));
  if (k % groups != 0) {
    return refused("quantized_gemm",
                   fmt::format("{} groups of scales don't divide k, {}", groups, k));
  }
  if (k / groups != 128) set(problem, "group", std::to_string(k / groups));
  Given given;
  for (const Tensor& one : {a, b, options.scales}) given.add(one);
  if (options.zeros) set(problem, "zeros", "groups");
  given.add_if(options.zeros);
  given.add(c);
  return start(problem, given);
}

Result<void> Operations::scaled_gemm(const Tensor& a, const Tensor& b, const Tensor& scales_a,
                                     const Tensor& scales_b, const Tensor& c,
                                     const ScaledGemmOptions& options) {
  if (b && b.shape().rank() != 2) return bad_rank("scaled_gemm", "B", b, "[n, k]");
  Problem problem = problem_of("scaled_gemm", c.dtype(), c.dtype(),
                               {{"m", rows_of(a)}, {"n", b ? b.shape()[0] : 1}, {"k", cols_of(a)}});
  if (options.format != kernels::ByteFormat::e4m3) {
    set(problem, "format", std::string(kernels::to_string(options.format)));
  }
  if (options.scales == ScaleSharing::row) set(problem, "scales", "row");
  if (options.scales == ScaleSharing::block) set(problem, "scales", "block");
  return start(problem, std::array{a, b, scales_a, scales_b, c});
}

Result<void> Operations::quantize(const Tensor& x, const Tensor& q, const Tensor& scales,
                                  const QuantizeOptions& options) {
  const bool norm = static_cast<bool>(options.weight), added = static_cast<bool>(options.residual);
  const bool packed = x && q && cols_of(x) != cols_of(q), gated = packed || options.up;
  if (added != static_cast<bool>(options.sum) || (added && !norm)) {
    return refused("quantize", "residual and sum are given together, with a weight");
  }
  if (gated && (norm || (packed && options.up))) {
    return refused("quantize", "gate and up are two operands, or one of 2 cols, without a weight");
  }
  Problem problem =
      problem_of("quantize", x.dtype(), q.dtype(), {{"rows", rows_of(x)}, {"cols", cols_of(q)}});
  if (options.format != kernels::ByteFormat::e4m3) {
    set(problem, "format", std::string(kernels::to_string(options.format)));
  }
  if (options.scales == ScaleSharing::block) set(problem, "scales", "block");
  if (options.scales == ScaleSharing::tensor) set(problem, "scales", "tensor");
  if (norm) set(problem, "fused", added ? "add_rmsnorm" : "rmsnorm");
  if (gated) set(problem, "fused", "silu_mul");
  if (packed) set(problem, "layout", "packed");
  if (norm && options.epsilon != 1e-5F) set(problem, "epsilon", number(options.epsilon));
  set_stride(problem, "x_stride", x);
  set_stride(problem, "q_stride", q);
  Given given;
  given.add(x);
  for (const Tensor& one : {options.up, options.residual, options.weight}) given.add_if(one);
  if (options.scales == ScaleSharing::tensor) given.add(scales);
  given.add_if(options.sum);
  given.add(q);
  if (options.scales != ScaleSharing::tensor) given.add(scales);
  return start(problem, given);
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
