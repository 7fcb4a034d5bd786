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

/// A matrix of weights in a mapped file: row-major [rows, cols], with one row per output. A norm's
/// weights are one row. `data` may be unaligned: read it with load_element() or copy it.
struct WeightView {
  DType dtype = DType::f32;  ///< a floating-point type
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
  WeightView head;        ///< [vocab, dim]; the embedding if they are tied
};

/// A model. Its files stay mapped while the object exists.
struct LlamaModel {
  LlamaConfig config;
  LlamaWeights weights;
  std::filesystem::path path;  ///< the folder or the checkpoint that was loaded
  std::vector<std::shared_ptr<const MappedFile>> files;
};

/// Opens a model and detects its format:
/// - a folder in Hugging Face's format: config.json with model.safetensors, or with the shards that
///   model.safetensors.index.json lists; generation_config.json may add end-of-text tokens. The
///   rope style is `half`.
/// - a file, or the only .bin file of a folder besides tokenizers (tok*.bin): a legacy checkpoint
/// of
///   llama2.c, in f32; the rope style is `interleaved`.
/// All header fields are checked before use: bounds, shapes, types, overlaps, and that there are no
/// tensors that the architecture would ignore. Throws Error with a one-line message.
LlamaModel load_llama(const std::filesystem::path& path);

}  // namespace greta::runtime
