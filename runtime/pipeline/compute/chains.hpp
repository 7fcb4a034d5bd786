#pragma once

#include <optional>
#include <string>

#include "kernels/model/problem.hpp"
#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/weight_matrix.hpp"

/// Chains of operations (kernels/chains/chains.hpp) on tensors. Each function asks the pipeline for
/// the alternative that is chosen for the chain, and records its operations. It throws Error.
/// Operations are labelled with `prefix` and their names. Temporaries have x's type.
namespace greta::runtime {

/// Returns whether the alternative for a chain that begins with a norm has it as an operation of
/// its own, so that another chain can compute it.
bool has_norm_apart(Pipeline& pipeline, const Problem& chain);

/// Rows that a chain multiplies, quantised or as numbers.
struct ChainRows {
  Tensor numbers{};    ///< [rows, cols]; empty: within the launch that quantised them
  ScaledRows codes{};  ///< for scaled weights; empty: not quantised yet, or not at all

  explicit operator bool() const { return numbers || codes; }
};

/// A norm whose result the chain multiplies.
struct ChainNorm {
  Tensor weight;  ///< [dim]
  float epsilon = 1e-5F;
  ChainRows result{};         ///< if one is there, it is computed already, and has_norm_apart()
  std::string name = "norm";  ///< in labels
  /// With a result that others need as well: an alternative that computes the norm itself is
  /// replaced by the one that differs from it in this only.
  bool kept = false;
};

/// Products of rows with the parts of a projection.
struct ProjectedParts {
  Tensor all;  ///< [rows, all columns]; empty: the parts are apart
  std::vector<Tensor>
      parts;  ///< [rows, columns of the part] each: columns of `all`, if it is there
};

/// silu(gate) * up with [gate | up] = norm(x) transposed(weights).
struct GateUp {
  Tensor x;  ///< [rows, dim]
  ChainNorm norm;
  Projection weights;  ///< [2 hidden, dim]: rows of gates, then of ups
  std::string prefix{};
  /// How `out` is quantised for the product that follows; empty: it is not.
  std::optional<ScaledInput> quantised_to{};
  /// [2 hidden], which is added to the products; empty: none. With quantised weights, gates are not
  /// an epilogue then, which are one thing at most.
  Tensor bias{};
  Tensor zeros{};  ///< as in Qkv
};
struct GateUpResults {
  Tensor normed;            ///< [rows, dim]; empty: within another launch
  ProjectedParts products;  ///< gates and ups, [rows, hidden] each; none: within another launch
  ChainRows out;            ///< [rows, hidden]
};
Problem chain_of(const GateUp& chain);
GateUpResults record(Pipeline& pipeline, const GateUp& chain);

/// norm(x) transposed(weights) of queries, keys and values.
struct Qkv {
  Tensor x;  ///< [rows, dim]
  ChainNorm norm;
  Projection weights;  ///< [queries + 2 keys, dim]: rows of queries, keys, values
  std::int64_t queries = 0;
  Tensor bias{};   ///< [queries + 2 keys], which is added; empty: none
  Tensor zeros{};  ///< i32 [rows] of 0; only for a bias after products without epilogues
  std::string prefix{};
};
struct QkvResults {
  Tensor normed;       ///< [rows, dim]; empty: within another launch
  ProjectedParts out;  ///< queries, keys and values: [rows, queries], [rows, keys] twice
};
Problem chain_of(const Qkv& chain);
QkvResults record(Pipeline& pipeline, const Qkv& chain);

/// sum = x transposed(weights) + bias + residual, and norm(sum).
struct ResidualNorm {
  ChainRows x;           ///< [rows, inner]
  WeightMatrix weights;  ///< [dim, inner]
  Tensor residual;       ///< [rows, dim]
  ChainNorm norm;
  std::string name = "product";  ///< in labels
  std::string prefix{};
  /// How the norm is quantised for the products that follow; empty: it is not.
  std::optional<ScaledInput> quantised_to{};
  Tensor bias{};   ///< [dim]; empty: none
  Tensor zeros{};  ///< as in Qkv
};
struct ResidualNormResults {
  Tensor sum;        ///< [rows, dim]
  ChainRows normed;  ///< [rows, dim], computed from the sum before it is rounded; empty: the chain
                     ///< that begins with the norm computes it
};
Problem chain_of(const ResidualNorm& chain);
/// `apart`: whether the following chain has_norm_apart(). If not, there is nothing to choose: the
/// residual is added by the product, or after one with quantised weights.
ResidualNormResults record(Pipeline& pipeline, const ResidualNorm& chain, bool apart);

/// Rotates queries and keys and appends keys and values to the caches.
struct RopeKv {
  /// [batch, tokens, heads + 2 kv_heads, dim], or [batch, tokens, heads, dim] where keys and values
  /// are apart. Queries and keys may be rotated in place.
  Tensor heads;
  std::int64_t queries = 0;     ///< heads of queries; keys and values have equal numbers
  Tensor apart_k{}, apart_v{};  ///< [batch, tokens, kv_heads, dim]; empty: in `heads`
  Tensor positions;             ///< i32 [batch * tokens]
  Tensor table;                 ///< f32 [positions, dim]
  Tensor slots;                 ///< i32 [batch]
  Tensor keys, values;          ///< [batch, kv_heads, capacity, dim]; pages, see block_table
  Tensor
      block_table{};  ///< i32 [batch, pages]: keys and values are [all pages, kv_heads, page, dim]
  RopePairs pairs = RopePairs::interleaved;
  /// [dim]: weights of RMS norms of the heads of queries and keys before the rotation, which only
  /// `rope_append` computes; both or none.
  Tensor q_norm{}, k_norm{};
  float epsilon = 1e-5F;  ///< of the norms
  std::string prefix{};

  /// Returns the number of tokens of a sequence that the caches hold.
  std::int64_t capacity() const {
    return (block_table ? block_table.shape()[1] : 1) * keys.shape()[2];
  }
};
struct RopeKvResults {
  Tensor queries;        ///< [batch, tokens, heads, dim], rotated
  bool in_place = true;  ///< `heads`, or this and `apart_k`, has the rotated queries and keys
};
Problem chain_of(const RopeKv& chain);
RopeKvResults record(Pipeline& pipeline, const RopeKv& chain);

}  // namespace greta::runtime
