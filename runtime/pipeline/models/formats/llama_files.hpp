#pragma once

#include <filesystem>
#include <memory>

#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

// The file formats of load_llama(). Both functions throw Error with a one-line message.

/// Reads a legacy checkpoint of llama2.c: seven little-endian int32 (dim, hidden_dim, layers,
/// heads, kv_heads, vocab, positions; a negative vocab means that the head is not the embedding),
/// then f32 tensors: the embedding; each tensor kind of all layers; the final norm; two RoPE
/// tables, which are ignored; the head. The file must have exactly this size. Source: Karpathy,
/// llama2.c, run.c.
LlamaModel load_checkpoint(const std::filesystem::path& path);

/// Reads a folder of Hugging Face's LlamaForCausalLM.
LlamaModel load_hugging_face(const std::filesystem::path& folder);

}  // namespace greta::runtime
