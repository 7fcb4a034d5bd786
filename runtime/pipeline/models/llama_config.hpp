#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/matrix_format.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Which elements of a head form a pair: (2i, 2i+1), or (i, i + head_dim/2).
enum class RopeStyle { interleaved, half };
std::string_view to_string(RopeStyle style);  ///< "interleaved", "half": rope's attribute `style`

/// How the rotation frequencies are reduced for longer contexts.
struct RopeScaling {
  enum class Kind {
    none,
    linear,  ///< all are divided by `factor`
    llama3,  ///< long wavelengths divided by `factor`, short ones kept, those between interpolated
    yarn,    ///< the same, with limits in pairs of a head; and rotated heads are multiplied
  };
  Kind kind = Kind::none;
  double factor = 1;
  // llama3: wavelengths above original_positions / low_frequency_factor are long, those below
  // original_positions / high_frequency_factor are short.
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  std::int64_t original_positions = 8192;
  // yarn: pairs that turn more often than fast_rotations in original_positions are kept, those that
  // turn less often than slow_rotations divided. Limits are whole numbers of pairs or not.
  double fast_rotations = 32;
  double slow_rotations = 1;
  bool whole_pairs = true;
  double attention_factor = 1;  ///< by which cosines and sines are multiplied
};

/// Returns the factor of YaRN's rotated heads: 0.1 * scale * ln(factor) + 1. Source: Peng et al.,
/// YaRN, 2023; `scale` is of models that change it.
double yarn_attention_factor(double factor, double scale = 1);

/// How the projections of a layer are stored.
struct LlamaLayerFormats {
  MatrixFormat wq, wk, wv, wo, gate, up, down;
  MatrixFormat expert_gate_up, expert_down;  ///< of all experts of the layer

  bool operator==(const LlamaLayerFormats&) const = default;

  std::array<MatrixFormat, 9> all() const {
    return {wq, wk, wv, wo, gate, up, down, expert_gate_up, expert_down};
  }
};

/// How a model's matrices are stored. Embedding tables and norms are always numbers.
struct LlamaFormats {
  std::vector<LlamaLayerFormats> layers;  ///< empty: all are numbers
  MatrixFormat head;
  /// How experts are stored that products can't read, for messages; empty: they can read all.
  std::string unread_experts{};

  /// Returns whether any matrix multiplies rows that are quantised with a given scale.
  bool given_inputs() const;
  LlamaLayerFormats layer(std::int64_t index) const {
    return layers.empty() ? LlamaLayerFormats{} : layers.at(static_cast<std::size_t>(index));
  }
};

/// Mixtures of experts in place of the feed-forward networks of layers: a router selects `top_k` of
/// `count` networks for each token, whose results are added up with the router's weights.
struct LlamaExperts {
  std::int64_t count = 0;       ///< 0: no layer has experts
  std::int64_t top_k = 0;       ///< experts of a token
  std::int64_t hidden_dim = 0;  ///< of an expert
  /// Of a further expert that every token has, weighted by the sigmoid of a logit of its own
  /// (Qwen2); 0: there is none.
  std::int64_t shared_hidden_dim = 0;
  /// Whether a token's weights are divided by their sum. They are shares of the softmax over all
  /// experts otherwise.
  bool renormalise = true;
  std::vector<std::int64_t> dense_layers{};  ///< without experts, ascending

  static constexpr std::int64_t most = 1024;      ///< experts
  static constexpr std::int64_t most_top_k = 64;  ///< experts of a token

  bool operator==(const LlamaExperts&) const = default;
};

/// The architecture of a Llama: RMSNorm, attention with RoPE and grouped KV heads, SwiGLU; and of
/// Mistral, Mixtral, Qwen2 and Qwen3, which differ from it by the members below.
struct LlamaConfig {
  std::int64_t dim = 0;         ///< of the residual stream
  std::int64_t hidden_dim = 0;  ///< of the feed-forward networks of layers without experts
  std::int64_t layers = 0;
  std::int64_t heads = 0;     ///< of queries
  std::int64_t kv_heads = 0;  ///< divides heads
  std::int64_t head_dim = 0;  ///< even; heads * head_dim need not equal dim
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  double rope_theta = 10000;
  RopeStyle rope_style = RopeStyle::half;
  RopeScaling rope_scaling;
  /// If not empty, one number above 0 per pair, by which its frequency is divided.
  std::vector<double> rope_divisors;
  double norm_epsilon = 1e-5;
  bool tied_embeddings = false;  ///< the head is the embedding
  bool qkv_bias = false;         ///< queries, keys and values have biases (Qwen2)
  bool out_bias = false;         ///< the output projections of attention have biases
  bool mlp_bias = false;         ///< gates, ups and downs of layers without experts have biases
  /// The heads of queries and keys are normalised before the rotation, by an RMSNorm whose weights
  /// all heads share (Qwen3).
  bool qk_norm = false;
  LlamaExperts experts;
  std::optional<DType> dtype;  ///< of the weights, if the file says it (torch_dtype)
  LlamaFormats formats;        ///< of matrices that are quantised
  std::int32_t bos = 1;
  std::vector<std::int32_t> eos;  ///< generation ends after any of these

  std::int64_t q_dim() const { return heads * head_dim; }
  std::int64_t kv_dim() const { return kv_heads * head_dim; }
  /// Returns whether the matrices of experts are whole blocks that share a scale.
  bool has_whole_blocks() const {
    return dim % ScaledFormat::block == 0 && experts.hidden_dim % ScaledFormat::block == 0;
  }
  /// Returns whether a layer has experts.
  bool has_experts(std::int64_t layer) const;
  /// Returns whether the feed-forward network of a layer has biases.
  bool has_mlp_bias(std::int64_t layer) const { return mlp_bias && !has_experts(layer); }
  /// Returns the hidden_dim of the network that all tokens of a layer have: the feed-forward
  /// network or the shared expert; 0: there is none.
  std::int64_t ffn_dim(std::int64_t layer) const {
    return has_experts(layer) ? experts.shared_hidden_dim : hidden_dim;
  }
  /// Returns the number of weights in all matrices and norms. A tied head is not counted twice.
  std::int64_t parameters() const;
  /// Throws Error (`invalid_argument`) that names the first invalid value. Products of valid values
  /// do not overflow.
  void check() const;
};

/// Returns "llama-2-7b", "llama-3-8b", "mixtral-8x7b" and "qwen3-30b-a3b".
const std::vector<std::string>& llama_names();
/// Returns an architecture by name, or std::nullopt for a name that is not in llama_names().
std::optional<LlamaConfig> named_llama(std::string_view name);
/// Reads and checks a config.json of Hugging Face's models llama, mistral, mixtral, qwen2,
/// qwen2_moe, qwen3 and qwen3_moe, or the architecture of a GGUF file. A model that attends to a
/// window of tokens has so many positions at most. Throws Error for other files, and for models
/// with unsupported features (other activations, other kinds of quantised weights than
/// load_llama() reads, other kinds of rope_scaling).
LlamaConfig llama_config_from_file(const std::filesystem::path& path);
/// Parses the text of a config.json. `name` is used in messages.
LlamaConfig llama_config_from_json(std::string_view text, const std::string& name);
/// Returns eos_token_id of a config.json or generation_config.json: one id, a list, or none.
std::vector<std::int32_t> end_tokens_from_json(std::string_view text, const std::string& name);

/// Returns the radians per position of each of the head_dim / 2 pairs, including scaling:
/// theta^(-2i / head_dim). Source of `llama3`: Meta, llama-models, apply_scaling(); of `yarn`: Peng
/// et al., YaRN, 2023, section 3.2.
std::vector<double> rope_frequencies(const LlamaConfig& config);
/// Returns cosine and sine of each pair at positions 0 to positions-1, times the attention factor,
/// computed in FP64 and rounded once: `positions` rows of head_dim / 2 pairs, the format of rope's
/// table.
std::vector<float> rope_table(const LlamaConfig& config, std::int64_t positions);

}  // namespace greta::runtime
