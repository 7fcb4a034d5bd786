#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// A layer's weights on a device. Matrices that are multiplied by the same vector are concatenated,
/// so that a decode step reads them in one launch. The parts are slices of the rows.
struct LlamaDeviceLayer {
  Tensor attn_norm;  ///< [dim]
  Tensor qkv;        ///< [q_dim + 2 kv_dim, dim]: rows of queries, keys, values
  Tensor wo;         ///< [dim, q_dim]
  Tensor ffn_norm;   ///< [dim]
  Tensor gate_up;    ///< [2 hidden_dim, dim]: rows of gate, then of up
  Tensor down;       ///< [dim, hidden_dim]
};

/// A Llama's weights on a device, all of the same type.
struct LlamaDeviceWeights {
  LlamaConfig config;
  DType dtype = DType::f32;
  Tensor embedding;  ///< [vocab, dim]
  std::vector<LlamaDeviceLayer> layers;
  Tensor final_norm;  ///< [dim]
  Tensor head;        ///< [vocab, dim]; the embedding if they are tied
};

/// Creates uninitialised tensors for the weights of an architecture.
LlamaDeviceWeights make_weights(const LlamaConfig& config, DType dtype, const TensorMaker& make);

/// Returns the size of an architecture's weights.
std::uint64_t weight_bytes(const LlamaConfig& config, DType dtype);

/// Rounds a model's weights to `dtype` and copies them to the device. Throws Error.
LlamaDeviceWeights upload_weights(Runtime& runtime, const LlamaModel& model, DType dtype);

/// Creates random weights: norms are 1, others uniform in +-sqrt(3 / dim), so that the magnitude of
/// activations is preserved. Throws Error.
LlamaDeviceWeights random_weights(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                  std::uint64_t seed);

}  // namespace greta::runtime
