#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "runtime/device/dtype.hpp"
#include "runtime/pipeline/models/llama_config.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {

/// A matrix of weights in a mapped file: row-major [rows, cols], rows being outputs. A norm's
/// weights are one row. `data` may be aligned to nothing: read it by load_element() or copy it.
struct WeightView {
  DType dtype = DType::f32;  ///< floating
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::byte* data = nullptr;

  std::size_t elements() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  std::size_t bytes() const { return bytes_of(dtype, elements()); }
};

struct LlamaLayer {
  WeightView attn_norm;  ///< [1, dim]
  WeightView wq;         ///< [q_dim, dim]
  WeightView wk, wv;     ///< [kv_dim, dim]
  WeightView wo;         ///< [dim, q_dim]
  WeightView ffn_norm;   ///< [1, dim]
  WeightView gate, up;   ///< [hidden_dim, dim]
  WeightView down;       ///< [dim, hidden_dim]
};

struct LlamaWeights {
  WeightView embedding;  ///< [vocab, dim]
  std::vector<LlamaLayer> layers;
  WeightView final_norm;  ///< [1, dim]
  WeightView head;        ///< [vocab, dim]; the embedding where they are tied
};

/// A model whose files stay mapped as long as it lives.
struct LlamaModel {
  LlamaConfig config;
  LlamaWeights weights;
  std::filesystem::path path;  ///< as it was given
  std::vector<std::shared_ptr<const MappedFile>> files;
};

/// Opens a model, told by what is there:
/// - a folder as Hugging Face keeps Llamas: config.json with model.safetensors, or with the shards
///   that model.safetensors.index.json names; generation_config.json may add ends of text. The rope
///   style is `half`.
/// - a file: a legacy checkpoint of llama2.c, in f32; interleaved.
/// Everything that headers say is checked before it is used: bounds, shapes, types, overlaps, and
/// that nothing is there that the architecture would leave out. Throws Error with one line.
LlamaModel load_llama(const std::filesystem::path& path);

}  // namespace greta::runtime
