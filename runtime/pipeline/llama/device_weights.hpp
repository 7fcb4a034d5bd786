#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// A layer's weights on a device. What is multiplied by the same vector stands in one matrix, so
/// that a decode step reads it in one launch; its parts are slices of the rows.
struct LlamaDeviceLayer {
  Tensor attn_norm;  ///< [dim]
  Tensor qkv;        ///< [q_dim + 2 kv_dim, dim]: queries', keys', values' rows
  Tensor wo;         ///< [dim, q_dim]
  Tensor ffn_norm;   ///< [dim]
  Tensor gate_up;    ///< [2 hidden_dim, dim]: the gate's rows, then those of up
  Tensor down;       ///< [dim, hidden_dim]
};

/// A Llama's weights on a device, all of one type.
struct LlamaDeviceWeights {
  LlamaConfig config;
  DType dtype = DType::f32;
  Tensor embedding;  ///< [vocab, dim]
  std::vector<LlamaDeviceLayer> layers;
  Tensor final_norm;  ///< [dim]
  Tensor head;        ///< [vocab, dim]; the embedding itself where they are tied
};

/// Tensors for the weights of an architecture, without contents.
LlamaDeviceWeights make_weights(const LlamaConfig& config, DType dtype, const TensorMaker& make);

/// Bytes that the weights of an architecture take.
std::uint64_t weight_bytes(const LlamaConfig& config, DType dtype);

/// Rounds a model's weights to `dtype` and copies them to the device. Throws Error.
LlamaDeviceWeights upload_weights(Runtime& runtime, const LlamaModel& model, DType dtype);

/// Weights for an architecture of which none are at hand: norms' are one, others uniform in
/// +-sqrt(3 / dim), so that activations keep their size. Throws Error.
LlamaDeviceWeights random_weights(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                  std::uint64_t seed);

}  // namespace greta::runtime
