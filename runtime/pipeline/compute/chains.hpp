#pragma once

#include <string>

#include "kernels/model/problem.hpp"
#include "runtime/pipeline/compute/pipeline.hpp"

/// Chains of operations (kernels/chains/chains.hpp) on tensors. Each function asks the pipeline for
/// the alternative that is chosen for the chain, and records its operations. It throws Error.
/// Operations are labelled with `prefix` and their names. Temporaries have x's type.
namespace greta::runtime {

/// Returns whether the alternative for a chain that begins with a norm has it as an operation of
/// its own, so that another chain can compute it.
bool has_norm_apart(Pipeline& pipeline, const Problem& chain);

/// A norm whose result the chain multiplies.
struct ChainNorm {
  Tensor weight;  ///< [dim]
  float epsilon = 1e-5F;
  Tensor result{};  ///< [rows, dim]: it is computed already, and has_norm_apart(); empty: it is not
  std::string name = "norm";  ///< in labels
};

/// silu(gate) * up with [gate | up] = norm(x) transposed(weights).
struct GateUp {
  Tensor x;  ///< [rows, dim]
  ChainNorm norm;
  Tensor weights;  ///< [2 hidden, dim]: rows of gates, then of ups
  std::string prefix{};
};
struct GateUpResults {
  Tensor normed, products;  ///< [rows, dim], [rows, 2 hidden]; empty: within another launch
  Tensor out;               ///< [rows, hidden]
};
Problem chain_of(const GateUp& chain);
GateUpResults record(Pipeline& pipeline, const GateUp& chain);

/// norm(x) transposed(weights) of queries, keys and values.
struct Qkv {
  Tensor x;  ///< [rows, dim]
  ChainNorm norm;
  Tensor weights;  ///< [queries + 2 keys, dim]: rows of queries, keys, values
  std::int64_t queries = 0;
  std::string prefix{};
};
struct QkvResults {
  Tensor normed;  ///< [rows, dim]; empty: within another launch
  Tensor out;     ///< [rows, queries + 2 keys]
};
Problem chain_of(const Qkv& chain);
QkvResults record(Pipeline& pipeline, const Qkv& chain);

/// sum = x transposed(weights) + residual, and norm(sum).
struct ResidualNorm {
  Tensor x;         ///< [rows, inner]
  Tensor weights;   ///< [dim, inner]
  Tensor residual;  ///< [rows, dim]
  ChainNorm norm;
  std::string name = "product";  ///< in labels
  std::string prefix{};
};
struct ResidualNormResults {
  Tensor sum;     ///< [rows, dim]
  Tensor normed;  ///< [rows, dim], computed from the sum before it is rounded; empty: the chain
                  ///< that begins with the norm computes it
};
Problem chain_of(const ResidualNorm& chain);
/// `apart`: whether the following chain has_norm_apart(). If not, there is nothing to choose.
ResidualNormResults record(Pipeline& pipeline, const ResidualNorm& chain, bool apart);

/// Rotates queries and keys and appends keys and values to the caches.
struct RopeKv {
  Tensor heads;  ///< [batch, tokens, heads + 2 kv_heads, dim]; keys may be rotated in place
  std::int64_t queries = 0;  ///< heads of queries; keys and values have equal numbers
  Tensor positions;          ///< i32 [batch * tokens]
  Tensor table;              ///< f32 [positions, dim]
  Tensor slots;              ///< i32 [batch]
  Tensor keys, values;       ///< [batch, kv_heads, capacity, dim]
  RopePairs pairs = RopePairs::interleaved;
  std::string prefix{};
};
struct RopeKvResults {
  Tensor queries;        ///< [batch, tokens, heads, dim], rotated
  bool in_place = true;  ///< `heads` has the rotated queries and keys
};
Problem chain_of(const RopeKv& chain);
RopeKvResults record(Pipeline& pipeline, const RopeKv& chain);

}  // namespace greta::runtime
