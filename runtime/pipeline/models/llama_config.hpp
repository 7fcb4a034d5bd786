#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Which elements of a head are rotated together: neighbours (2i, 2i+1), or (i, i + head_dim/2).
enum class RopeStyle { interleaved, half };
std::string_view to_string(RopeStyle style);  ///< "interleaved", "half": rope's attribute `style`

/// How the rotations' frequencies are lowered for longer contexts.
struct RopeScaling {
  enum class Kind {
    none,
    linear,  ///< all divided by `factor`
    llama3,  ///< long waves divided by `factor`, short ones kept, those between interpolated
  };
  Kind kind = Kind::none;
  double factor = 1;
  // Of llama3: waves longer than original_positions / low_frequency_factor are long, shorter than
  // original_positions / high_frequency_factor short.
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  std::int64_t original_positions = 8192;
};

/// The architecture of a Llama: RMSNorm, attention with RoPE and grouped KV heads, SwiGLU.
struct LlamaConfig {
  std::int64_t dim = 0;         ///< of the residual stream
  std::int64_t hidden_dim = 0;  ///< of the feed-forward network
  std::int64_t layers = 0;
  std::int64_t heads = 0;     ///< of queries
  std::int64_t kv_heads = 0;  ///< divides heads
  std::int64_t head_dim = 0;  ///< even; heads * head_dim need not be dim
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  double rope_theta = 10000;
  RopeStyle rope_style = RopeStyle::half;
  RopeScaling rope_scaling;
  double norm_epsilon = 1e-5;
  bool tied_embeddings = false;  ///< the head is the embedding
  std::int32_t bos = 1;
  std::vector<std::int32_t> eos;  ///< generation ends behind any of these

  std::int64_t q_dim() const { return heads * head_dim; }
  std::int64_t kv_dim() const { return kv_heads * head_dim; }
  /// Weights of all matrices and norms; a tied head is not counted again.
  std::int64_t parameters() const;
  /// Throws Error `invalid_argument` that names the first value that can't be; whatever passes can
  /// be multiplied without overflow.
  void check() const;
};

/// "llama-2-7b" and "llama-3-8b".
const std::vector<std::string>& llama_names();
/// An architecture by its name; nothing for a name that llama_names() doesn't have.
std::optional<LlamaConfig> named_llama(std::string_view name);
/// A config.json of Hugging Face's LlamaForCausalLM, checked. Throws Error for a file that isn't
/// one, and for a model that needs more than this architecture (biases, other activations,
/// quantised weights, other kinds of rope_scaling).
LlamaConfig llama_config_from_file(const std::filesystem::path& path);
/// The same from its text; `name` is used in messages.
LlamaConfig llama_config_from_json(std::string_view text, const std::string& name);
/// eos_token_id of a config.json or generation_config.json: one id, a list of them, or none.
std::vector<std::int32_t> end_tokens_from_json(std::string_view text, const std::string& name);

/// Radians by which a position turns each of the head_dim / 2 pairs, scaling included:
/// theta^(-2i / head_dim). Source of `llama3`: Meta, llama-models, apply_scaling().
std::vector<double> rope_frequencies(const LlamaConfig& config);
/// Cosine and sine of each pair at positions 0 … positions-1, computed in FP64 and rounded once:
/// `positions` rows of head_dim / 2 pairs, as the operation rope takes its table.
std::vector<float> rope_table(const LlamaConfig& config, std::int64_t positions);

}  // namespace greta::runtime
