#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/compute/weight_matrix.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// A layer's weights on a device. Matrices that are multiplied by the same vector are concatenated,
/// so that a decode step reads them in one launch, where they have the same format.
struct LlamaDeviceLayer {
  Tensor attn_norm;  ///< [dim]
  Projection qkv;    ///< [q_dim + 2 kv_dim, dim]: rows of queries, keys, values
  WeightMatrix wo;   ///< [dim, q_dim]
  Tensor ffn_norm;   ///< [dim]
  /// [2 ffn_dim, dim]: rows of gate, then of up; no matrix if LlamaConfig::ffn_dim() is 0
  Projection gate_up;
  WeightMatrix down;                   ///< [dim, ffn_dim]
  Tensor qkv_bias{};                   ///< with LlamaConfig::qkv_bias: [q_dim + 2 kv_dim]
  Tensor out_bias{};                   ///< with LlamaConfig::out_bias: [dim]
  Tensor gate_up_bias{}, down_bias{};  ///< with a bias of the network: [2 ffn_dim], [dim]
  Tensor q_norm{}, k_norm{};           ///< with LlamaConfig::qk_norm: [head_dim]
  Tensor router{};                     ///< with experts: [experts, dim]
  WeightMatrix
      expert_gate_up{};        ///< [experts * 2 hidden_dim, dim]: an expert's gates, then its ups
  WeightMatrix expert_down{};  ///< [experts * dim, hidden_dim]
  Tensor shared_router{};      ///< with a shared expert: [1, dim]
};

/// A Llama's weights on a device: numbers of the same type, and matrices in LlamaConfig::formats.
struct LlamaDeviceWeights {
  LlamaConfig config;
  DType dtype = DType::f32;
  Tensor embedding;  ///< [vocab, dim]
  std::vector<LlamaDeviceLayer> layers;
  Tensor final_norm;  ///< [dim]
  WeightMatrix head;  ///< [vocab, dim]; the embedding if they are tied and it is not quantised
};

/// Creates uninitialised tensors for the weights of an architecture.
LlamaDeviceWeights make_weights(const LlamaConfig& config, DType dtype, const TensorMaker& make);

/// Returns the size of an architecture's weights.
std::uint64_t weight_bytes(const LlamaConfig& config, DType dtype);

/// Returns the memory that upload_weights() needs beside the weights until it is done: the largest
/// matrix whose rows become panels.
std::uint64_t repacking_bytes(const LlamaDeviceWeights& weights);

/// Copies a model's weights to the device: matrices in their formats, which LlamaModel::config must
/// have, all others rounded to `dtype`. Throws Error.
LlamaDeviceWeights upload_weights(Runtime& runtime, const LlamaModel& model, DType dtype);

/// Gives matrices for static activations the scales of rows of their products: f32 of 1, [most
/// rows, 1].
void set_ones(LlamaDeviceWeights& weights, const Tensor& ones);

/// Creates random weights: norms are 1, others uniform in +-sqrt(3 / dim), so that the magnitude of
/// activations is preserved. Those of quantised matrices have about the same magnitude: random
/// integers, and scales that are all the same; static activations are up to 8. Throws Error.
LlamaDeviceWeights random_weights(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                  std::uint64_t seed);

}  // namespace greta::runtime
