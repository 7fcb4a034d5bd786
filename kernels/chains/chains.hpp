#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/catalog.hpp"
#include "kernels/model/matrix_format.hpp"

/// Chains: operations that follow each other in a network and can be fused in several ways. A
/// pipeline asks for a chain, and records the alternative that is chosen for it (docs/fusion.md).
///
/// A chain is described as an operation is, and its alternatives as variants without parameters, so
/// that a choice has a problem's key and is stored, looked up, carried to the nearest shape,
/// merged, shipped and forced like a configuration. A chain has no kernels, operands or reference:
/// those are of the operations that an alternative consists of. So chains are in no catalog of
/// operations.
namespace greta::kernels {

/// Returns all chains.
const Catalog& chains();
/// Returns the operations of a catalog, and the chains whose names no operation has.
Catalog with_chains(const Catalog& operations);
bool is_chain(std::string_view name);

/// How the weights of a chain's products are stored: as numbers, as one matrix in a format of
/// `quantized_gemm`, in such a format with columns in another order, whose products have epilogues
/// but no prologue, or in other ways: as fp8, or as several matrices of different formats, whose
/// products have neither.
enum class ChainWeights { dense, quantised, ordered, others };

/// Of few rows, up to this number, a product can have a norm as its prologue, and a chain's default
/// is the alternative with the fewest launches.
constexpr std::int64_t most_fused_rows = 8;

/// The feed-forward layer up to silu(gate) * up: rmsnorm, the projections to gates and ups as one
/// product, and silu_mul. Alternatives:
/// - `fused`: one product with the norm as prologue and silu(gate) * up as epilogue; few rows
/// - `gated`: rmsnorm, and a product with that epilogue; not of other weights
/// - `normed`: a product with that prologue, and silu_mul; few rows
/// - `parts`: rmsnorm, product, silu_mul
Problem gate_up_chain(DType dtype, std::int64_t rows, std::int64_t hidden, std::int64_t dim,
                      ChainWeights weights = ChainWeights::dense);

/// rmsnorm and the projections to queries, keys and values. Alternatives:
/// - `fused`: one product with the norm as prologue; few rows
/// - `parts`: rmsnorm, one product; of quantised weights one for each format, the only alternative
/// - `split`: rmsnorm, and a product each for queries, keys and values
Problem qkv_chain(DType dtype, std::int64_t rows, std::int64_t queries, std::int64_t keys,
                  std::int64_t dim, ChainWeights weights = ChainWeights::dense);

/// A projection, the residual sum and the rmsnorm that follows. Alternatives:
/// - `epilogue`: a product that adds the residual, and rmsnorm
/// - `add_norm`: a product, and add_rmsnorm; the only one of other weights
Problem residual_norm_chain(DType dtype, std::int64_t rows, std::int64_t dim, std::int64_t inner,
                            ChainWeights weights = ChainWeights::dense);

/// Returns one of these three whose products may round weights (`math` of quantized_gemm), or the
/// chain itself if its weights are dense.
Problem with_rounded_weights(Problem chain);

/// The rotation of queries and keys, and the append of keys and values to their caches.
/// Alternatives:
/// - `fused`: rope_append
/// - `parts`: rope in place, and a kv_update for each sequence
struct RotatedHeads {
  std::int64_t batch, tokens, heads, kv_heads, dim, capacity;
};
Problem rope_kv_chain(DType dtype, const RotatedHeads& heads);

/// The feed-forward networks of the experts that a router has selected for each row, and their
/// weighted sum. Alternatives:
/// - `fused`: the operation experts, for most_expert_rows rows at a time; the default of few rows
/// - `scaled`: permute, quantize, a scaled grouped product with silu(gate) * up as epilogue,
///   quantize, a scaled grouped product, unpermute; the default of more rows with scaled matrices
/// - `quantised`: permute, two grouped products with the quantised matrices as they are, the first
///   with silu(gate) * up as epilogue, unpermute; the default of more rows with such matrices
/// - `gated`: permute, a grouped product with silu(gate) * up as epilogue, a grouped product,
///   unpermute
/// - `parts`: permute, a grouped product, silu_mul, a grouped product, unpermute
/// Of the last two, dequantize decodes quantised matrices first.
struct ExpertNetworks {
  std::int64_t rows, experts, top_k, dim, hidden;
  MatrixFormat gate_up{}, down{};  ///< both plain, alike, or in blocks
};
Problem expert_ffn_chain(DType dtype, const ExpertNetworks& networks);

/// The rows that the operation experts takes at a time.
constexpr std::int64_t most_expert_rows = 64;

/// What is quantised for products with scaled weights of this format: rows of `cols` elements.
struct RowsToQuantise {
  std::int64_t rows, cols;
  ScaledFormat format{};
};

/// A step and the quantisation of its result, which nothing else reads. Alternatives:
/// - `fused`: quantize, which computes the step first
/// - `parts`: the step, quantize
Problem norm_quantize_chain(DType dtype, const RowsToQuantise& rows);      ///< rmsnorm
Problem add_norm_quantize_chain(DType dtype, const RowsToQuantise& rows);  ///< add_rmsnorm
Problem silu_quantize_chain(DType dtype, const RowsToQuantise& rows);      ///< silu_mul

}  // namespace greta::kernels
