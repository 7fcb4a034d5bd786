#pragma once

#include <cstdint>
#include <string>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/weight_matrix.hpp"

/// Mixtures of experts on tensors. Each function records its operations, which are labelled with
/// `prefix` and their names, and throws Error. Temporaries have x's type unless stated otherwise.
/// The launches depend on shapes and on the alternative of the chain expert_ffn alone: which rows
/// an expert has is known on the device only.
namespace greta::runtime {

/// Networks down(silu(gate x) * up x), of which each row has the `top_k` with the largest logits of
/// a router.
struct Experts {
  Tensor x;              ///< [rows, dim]
  Tensor router;         ///< [experts, dim]
  WeightMatrix gate_up;  ///< [experts * 2 hidden, dim]: an expert's rows of gates, then of ups
  WeightMatrix down;     ///< [experts * dim, hidden]; formats as in ExpertNetworks
  std::int64_t top_k = 1;
  bool renormalise = true;  ///< RouteOptions::renormalise
  std::string prefix{};
};
struct ExpertsResults {
  Tensor logits;   ///< f32 [rows, experts]
  Tensor ids;      ///< i32 [rows, top_k]: the experts of a row
  Tensor weights;  ///< f32 [rows, top_k]
  // These are empty where the operation experts computes `out`.
  Tensor places;   ///< i32 [rows, top_k]: which rows of the following tensors are theirs
  Tensor rows;     ///< [rows * top_k, dim]: x by experts
  Tensor gate_up;  ///< [rows * top_k, 2 hidden]; empty: within the launch that computes `gated`
  Tensor gated;    ///< [rows * top_k, hidden]
  Tensor down;     ///< [rows * top_k, dim]

  Tensor out;  ///< [rows, dim]: the sum of a row's results, times their weights
};
Problem chain_of(const Experts& chain);
ExpertsResults record(Pipeline& pipeline, const Experts& chain);

/// out = y times the sigmoid of x transposed(router), a factor for each row.
struct RowGate {
  Tensor x;        ///< [rows, dim]
  Tensor router;   ///< [1, dim]
  Tensor y;        ///< [rows, hidden]
  Tensor numbers;  ///< i32 [rows or more]: 0, 1, 2, …
  std::string prefix{};
};
struct RowGateResults {
  Tensor logits;   ///< f32 [rows, 1]
  Tensor weights;  ///< f32 [rows, 1]
  Tensor out;      ///< [rows, hidden]
};
RowGateResults record(Pipeline& pipeline, const RowGate& chain);

}  // namespace greta::runtime
