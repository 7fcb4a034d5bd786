#include "runtime/pipeline/compute/operations.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "runtime/pipeline/compute/request.hpp"

namespace greta::runtime {
namespace {

/// The problem of packed sequences, or why there is none.
Result<Problem> packed_attention(const Tensor& q, const Tensor& k, const Tensor& lengths,
                                 const Tensor& out, const AttentionOptions& options) {
  if (q.shape().rank() != 3) return bad_rank("attention", "Q", q, "[queries, heads, dim]");
  if (k.shape().rank() != 3) return bad_rank("attention", "K", k, "[keys, kv_heads, dim]");
  if (!options.cu_seqlens_q || !options.cu_seqlens_k) {
    return refused("attention", "cu_seqlens_q and cu_seqlens_k, both or none");
  }
  if (lengths || options.block_table) {
    return refused("attention", "packed sequences have no lengths and no block table");
  }
  return problem_of("attention", q.dtype(), out.dtype(),
                    {{"batch", cols_of(options.cu_seqlens_q) - 1},
                     {"heads", q.shape()[1]},
                     {"kv_heads", k.shape()[1]},
                     {"q", q.shape()[0]},
                     {"kv", k.shape()[0]},
                     {"dim", q.shape()[2]}});
}

/// The problem of sequences of the same capacity, or why there is none.
Result<Problem> padded_attention(const Tensor& q, const Tensor& k, const Tensor& out,
                                 const AttentionOptions& options) {
  constexpr const char* queries = "[batch, q, heads, dim]";
  constexpr const char* keys = "[batch, kv_heads, capacity, dim]";
  constexpr const char* pages = "[pages, kv_heads, page, dim]";
  const std::size_t rank = q.shape().rank(), key_rank = k.shape().rank();
  if (rank < 3) return bad_rank("attention", "Q", q, queries);
  if (key_rank < 3) return bad_rank("attention", "K", k, keys);
  const std::int64_t page = k.shape()[key_rank - 2];
  if (options.block_table && key_rank != 4) return bad_rank("attention", "K", k, pages);
  const std::int64_t keys_of_sequence =
      options.block_table ? cols_of(options.block_table) * page : page;
  return problem_of("attention", q.dtype(), out.dtype(),
                    {{"batch", rank == 4 ? q.shape()[0] : 1},
                     {"heads", q.shape()[rank - 2]},
                     {"kv_heads", k.shape()[key_rank - 3]},
                     {"q", q.shape()[rank - 3]},
                     {"kv", keys_of_sequence},
                     {"dim", q.shape()[rank - 1]}});
}

/// Whether options are set that a tree excludes.
bool refuses_tree(const AttentionOptions& o) {
  return o.causal || o.window || o.softcap || o.sinks || o.cu_seqlens_q || o.cu_seqlens_k;
}

}  // namespace

Result<void> Operations::attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const Tensor& lengths, const Tensor& out,
                                   const AttentionOptions& options) {
  const bool packed = options.cu_seqlens_q || options.cu_seqlens_k;
  auto made =
      packed ? packed_attention(q, k, lengths, out, options) : padded_attention(q, k, out, options);
  if (!made) return made.failure();
  Problem& problem = *made;
  if (options.tree) {
    if (refuses_tree(options)) {
      return refused("attention",
                     "a tree has no mask, window, softcap, sinks and packed sequences");
    }
    problem.op = "tree_attention";
  }
  if (options.causal) set(problem, "mask", "causal");
  if (options.scale) set(problem, "scale", number(*options.scale));
  set_stride(problem, "q_stride", q, 2);
  set_v_dim(problem, cols_of(v));
  if (options.window) set(problem, "window", std::to_string(*options.window));
  if (options.softcap) set(problem, "softcap", number(*options.softcap));
  if (options.sinks) set(problem, "sinks", "head");
  if (options.lse) set(problem, "lse", "stored");
  if (options.block_table) {
    set(problem, "page_size", std::to_string(k.shape()[k.shape().rank() - 2]));
  }
  if (packed) set(problem, "sequences", "packed");
  if (options.ragged) set(problem, "lengths", "ragged");
  Given operands;
  for (const Tensor& each : {q, k, v}) operands.add(each);
  if (packed) {
    for (const Tensor& each : {options.cu_seqlens_q, options.cu_seqlens_k}) operands.add(each);
  } else {
    operands.add(lengths);
  }
  operands.add_if(options.block_table);
  operands.add_if(options.tree);
  operands.add_if(options.sinks);
  operands.add(out);
  operands.add_if(options.lse);
  return start(problem, operands);
}

Result<void> Operations::latent_attention(const Tensor& q, const Tensor& cache,
                                          const Tensor& lengths, const Tensor& out,
                                          const LatentAttentionOptions& options) {
  constexpr const char* op = "latent_attention";
  const std::size_t rank = q.shape().rank(), cache_rank = cache.shape().rank();
  if (rank < 3) return bad_rank(op, "Q", q, "[batch, q, heads, latent + rope]");
  if (cache_rank < 2 || (options.block_table && cache_rank != 3)) {
    return bad_rank(
        op, "the cache", cache,
        options.block_table ? "[pages, page, latent + rope]" : "[batch, capacity, latent + rope]");
  }
  const std::int64_t page = cache.shape()[cache_rank - 2];
  const std::int64_t latent = out.shape().rank() > 0 ? cols_of(out) : 0;
  if (latent > cols_of(q)) return refused(op, "out has longer rows than Q");
  if (options.tree && options.causal) return refused(op, "a tree has no mask");
  Problem problem =
      problem_of(op, q.dtype(), out.dtype(),
                 {{"batch", rank == 4 ? q.shape()[0] : 1},
                  {"heads", q.shape()[rank - 2]},
                  {"q", q.shape()[rank - 3]},
                  {"kv", options.block_table ? cols_of(options.block_table) * page : page},
                  {"latent", latent},
                  {"rope", cols_of(q) - latent}});
  if (options.causal) set(problem, "mask", "causal");
  if (options.tree) set(problem, "mask", "tree");
  if (options.scale) set(problem, "scale", number(*options.scale));
  set_stride(problem, "q_stride", q, 2);
  if (options.lse) set(problem, "lse", "stored");
  if (options.block_table) set(problem, "page_size", std::to_string(page));
  if (options.ragged) set(problem, "lengths", "ragged");
  Given operands;
  for (const Tensor& each : {q, cache, lengths}) operands.add(each);
  operands.add_if(options.block_table);
  operands.add_if(options.tree);
  operands.add(out);
  operands.add_if(options.lse);
  return start(problem, operands);
}

Result<void> Operations::attention_merge(const Tensor& outs, const Tensor& lses, const Tensor& out,
                                         const Tensor& lse) {
  const std::size_t rank = out.shape().rank();
  if (rank < 2) return bad_rank("attention_merge", "out", out, "[.., heads, dim]");
  const std::int64_t heads = out.shape()[rank - 2], dim = out.shape()[rank - 1];
  Problem problem = problem_of("attention_merge", outs.dtype(), out.dtype(),
                               {{"parts", outs.shape().rank() > 0 ? outs.shape()[0] : 1},
                                {"tokens", out.shape().elements() / heads / dim},
                                {"heads", heads},
                                {"dim", dim}});
  if (lse) set(problem, "lse", "stored");
  Given operands;
  for (const Tensor& each : {outs, lses, out}) operands.add(each);
  operands.add_if(lse);
  return start(problem, operands);
}

}  // namespace greta::runtime
