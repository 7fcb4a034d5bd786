#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/model/block_formats.hpp"
#include "kernels/model/matrix_format.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/pipeline/models/llama_config.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {

/// Weights with scales beside them: int4, int8 or mxfp4 (kernels/model/weight_formats.hpp); or the
/// numbers of mxfp4 with scales of f32, which devices have as numbers (nvfp4).
struct GroupedWeights {
  WeightFormat format = WeightFormat::int4;
  std::int64_t group = 128;           ///< weights of a row that share a scale; divides its length
  DType type = DType::f16;            ///< of the scales: f16 or bf16; of mxfp4 u8; of nvfp4 f32
  const std::byte* scales = nullptr;  ///< [rows, groups]
  const std::byte* zeros = nullptr;   ///< u8 [rows, groups] zero points, or nullptr
};

/// Numbers of eight bits with scales beside them.
struct ScaledWeights {
  ScaledFormat format{};
  const std::byte* scales = nullptr;  ///< f32 [format.scale_rows(rows), format.scale_cols(cols)]
  float input_scale = 1;              ///< with format.given_input: what activations are divided by
};

/// A matrix of weights in a mapped file, or in memory of its model: row-major [rows, cols], with
/// one row per output. A norm's weights are one row. `data` may be unaligned: use read(),
/// load_element() or a copy.
struct WeightView {
  DType dtype = DType::f32;  ///< a floating-point type; of blocks, the one they are decoded to if
                             ///< no other is asked for
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::byte* data = nullptr;
  std::optional<BlockFormat> blocks{};  ///< if set, `data` is blocks, of which rows have whole ones
  std::optional<GroupedWeights> groups{};  ///< if set, `data` is the integers of rows
  std::optional<ScaledWeights> scaled{};   ///< if set, `data` is bytes that stand for numbers
  /// If set, column i of `data` is column order[i] of the matrix, [cols]: a permutation. read() has
  /// the matrix's own order.
  const std::int32_t* order = nullptr;
  /// Whether devices get quantised weights as numbers. Otherwise, they multiply by them as they are
  /// if they can.
  bool decoded = false;

  bool quantised() const { return blocks || groups || scaled; }
  /// Returns how devices store it: in a format with the same weights, or as numbers.
  /// MatrixFormat::order is 1 if the columns are reordered.
  MatrixFormat format() const;
  std::size_t elements() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  /// Returns the size of `data`.
  std::size_t bytes() const { return offset(elements()); }
  /// Returns where element `index` begins in `data`; that of a block's first element for blocks.
  std::size_t offset(std::size_t index) const {
    if (groups) return index * static_cast<std::size_t>(traits(groups->format).bits) / 8;
    if (scaled) return index;
    if (!blocks) return bytes_of(dtype, index);
    const BlockFormatTraits& block = block_traits(*blocks);
    return index / block.elements * block.bytes;
  }
  /// Returns whether all elements are numbers of `type`.
  bool fits(DType type) const { return !quantised() && (type == dtype || type == DType::f32); }
  /// Writes elements first to first + count - 1 to `values`. For blocks, both must be multiples of
  /// the number of elements in a block. Scales beside integers are rounded to `scales` first, if it
  /// is given.
  void read(std::size_t first, std::size_t count, double* values,
            std::optional<DType> scales = std::nullopt) const;
};

/// A network down(silu(gate x) * up x).
struct LlamaExpert {
  WeightView gate, up;  ///< [hidden_dim, dim]
  WeightView down;      ///< [dim, hidden_dim]
};

struct LlamaLayer {
  WeightView attn_norm;             ///< [1, dim]
  WeightView wq;                    ///< [q_dim, dim]
  WeightView wk, wv;                ///< [kv_dim, dim]
  WeightView wo;                    ///< [dim, q_dim]
  WeightView ffn_norm;              ///< [1, dim]
  WeightView gate, up;              ///< [ffn_dim, dim], LlamaConfig::ffn_dim(); none if that is 0
  WeightView down;                  ///< [dim, ffn_dim]
  WeightView bq, bk, bv;            ///< with qkv_bias: [1, q_dim], [1, kv_dim] twice
  WeightView bo;                    ///< with out_bias: [1, dim]
  WeightView b_gate, b_up, b_down;  ///< with a bias of the network: [1, hidden_dim] twice, [1, dim]
  WeightView q_norm, k_norm;        ///< with qk_norm: [1, head_dim]
  WeightView router;                ///< with experts: [experts, dim]
  WeightView shared_router;         ///< with a shared expert: [1, dim]
  std::vector<LlamaExpert> experts{};
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
  std::filesystem::path path;  ///< the folder or the file that was loaded
  std::vector<std::shared_ptr<const MappedFile>> files;
  /// Weights that are in no file: converted ones.
  std::vector<std::shared_ptr<const std::vector<std::byte>>> converted{};
};

/// Returns how devices store a model's matrices. Experts of a layer that aren't stored alike, so
/// that products can't read them, are named in LlamaFormats::unread_experts: gates and ups of all
/// experts have one format, and so have their down projections; both are numbers, the same
/// integers, or in blocks.
LlamaFormats formats_of(const LlamaWeights& weights);

/// Matrices that a file has quantised and devices have as numbers, although nobody asked for it.
struct DecodedMatrices {
  std::map<std::string, std::int64_t> counts;  ///< by format, e.g. "q5_k"
  std::uint64_t bytes = 0;                     ///< on devices
};

/// Returns a model's matrices that devices have as numbers of a type because no product reads their
/// format. The table of the embedding, which is always numbers, is not one of them.
DecodedMatrices decoded_matrices(const LlamaWeights& weights, DType type);

/// Returns the type that devices store scales beside integers in, with activations of this type.
constexpr DType scales_type(DType activations) {
  return activations == DType::bf16 ? DType::bf16 : DType::f16;
}

/// Opens a model and detects its format:
/// - a folder in Hugging Face's format: config.json with model.safetensors, or with the shards that
///   model.safetensors.index.json lists; generation_config.json may add end-of-text tokens. The
///   rope style is `half`.
/// - a file that begins with "GGUF": see load_gguf(); the rope style is `interleaved`.
/// - another file, or the only .bin file of a folder besides tokenizers (tok*.bin): a legacy
///   checkpoint of llama2.c, in f32; the rope style is `interleaved`.
/// All header fields are checked before use: bounds, shapes, types, overlaps, and that there are no
/// tensors that the architecture would ignore. Throws Error with a one-line message.
LlamaModel load_llama(const std::filesystem::path& path);

}  // namespace greta::runtime
