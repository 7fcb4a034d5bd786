#pragma once

#include <filesystem>
#include <memory>

#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

// The kinds of files behind load_llama(). Both throw Error with one line.

/// A legacy checkpoint of llama2.c: seven little-endian int32 (dim, hidden_dim, layers, heads,
/// kv_heads, vocab, positions; a negative vocab says that the head is not the embedding), then f32
/// tensors: embedding; each kind of a layer's for all layers; final norm; two tables of RoPE, which
/// are not used; the head. The file has exactly these bytes. Source: Karpathy, llama2.c, run.c.
LlamaModel load_checkpoint(const std::filesystem::path& path);

/// A folder of Hugging Face's LlamaForCausalLM.
LlamaModel load_hugging_face(const std::filesystem::path& folder);

}  // namespace greta::runtime
