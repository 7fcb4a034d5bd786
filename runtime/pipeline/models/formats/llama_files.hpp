#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

// The file formats of load_llama(). All functions throw Error with a one-line message.

/// Reads a legacy checkpoint of llama2.c: seven little-endian int32 (dim, hidden_dim, layers,
/// heads, kv_heads, vocab, positions; a negative vocab means that the head is not the embedding),
/// then f32 tensors: the embedding; each tensor kind of all layers; the final norm; two RoPE
/// tables, which are ignored; the head. The file must have exactly this size. Source: Karpathy,
/// llama2.c, run.c.
LlamaModel load_checkpoint(const std::filesystem::path& path);

/// Returns the text of a config.json, with the quantize_config.json beside it as its
/// quantization_config if it has none: older exporters of GPTQ wrote this file alone.
std::string config_text(const std::filesystem::path& path);

/// Reads a folder of Hugging Face's models llama, mistral, mixtral, qwen2, qwen2_moe, qwen3 and
/// qwen3_moe.
LlamaModel load_hugging_face(const std::filesystem::path& folder);

/// Returns whether a file can be read and begins with "GGUF".
bool is_gguf(const std::filesystem::path& path);

/// Reads a GGUF file (version 2 or 3, little-endian) of architecture `llama`, which models of
/// Mistral and Mixtral have, too, `qwen2`, `qwen2moe`, `qwen3` or `qwen3moe`. Matrices may be F32,
/// F16, BF16, or in a BlockFormat, of which some become another one or numbers on devices
/// (WeightView::format()). The converter to GGUF orders the rows
/// of wq and wk of Llamas for interleaved rotation, so this is their rope style. `rope_freqs`,
/// where the file has them, become rope_divisors. bos and eos are the tokenizer's; bos is -1 if
/// texts begin without such a token.
LlamaModel load_gguf(const std::filesystem::path& path);

}  // namespace greta::runtime
