#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"
#include "runtime/pipeline/models/formats/packed_weights.hpp"
#include "runtime/pipeline/models/formats/scaled_weights.hpp"
#include "runtime/pipeline/models/llama_config.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t largest_extent = std::numeric_limits<std::int32_t>::max();

/// Reads what the models differ in. Rejects features that this architecture lacks.
void read_kind(const JsonFields& fields, LlamaConfig& config) {
  const std::string type = fields.text("model_type");
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3") {
    fields.refuse(fmt::format("model_type is '{}'; allowed: llama, mistral, qwen2, qwen3", type));
  }
  config.qkv_bias = type == "qwen2";
  config.qk_norm = type == "qwen3";
  if (fields.flag("use_sliding_window", false)) {
    fields.refuse("use_sliding_window is true; allowed: false");
  }
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu") {
    fields.refuse(fmt::format("hidden_act is '{}'; allowed: silu", activation));
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (fields.flag(bias, false)) fields.refuse(fmt::format("{} is true; allowed: false", bias));
  }
  if (fields.number("partial_rotary_factor", 1) != 1) {
    fields.refuse("partial_rotary_factor isn't 1: heads that are rotated in part");
  }
}

RopeScaling scaling_of(const JsonFields& fields) {
  RopeScaling scaling;
  const std::string kind = fields.text("rope_type", fields.text("type", "default"));
  if (kind == "default") return scaling;
  scaling.factor = fields.number("factor");
  if (kind == "linear") {
    scaling.kind = RopeScaling::Kind::linear;
    return scaling;
  }
  if (kind != "llama3") {
    fields.refuse(fmt::format("the kind is '{}'; allowed: default, linear, llama3", kind));
  }
  scaling.kind = RopeScaling::Kind::llama3;
  scaling.low_frequency_factor = fields.number("low_freq_factor");
  scaling.high_frequency_factor = fields.number("high_freq_factor");
  scaling.original_positions =
      fields.integer("original_max_position_embeddings", 1, largest_extent);
  return scaling;
}

void read_rope(const JsonFields& fields, LlamaConfig& config) {
  config.rope_style = RopeStyle::half;
  config.rope_theta = fields.number("rope_theta", config.rope_theta);
  // Later versions of the library store all of it in rope_parameters.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!fields.has(key)) continue;
    const JsonFields rope = fields.object(key);
    config.rope_theta = rope.number("rope_theta", config.rope_theta);
    config.rope_scaling = scaling_of(rope);
  }
}

/// Returns the type of the weights: torch_dtype, or dtype in newer files. Other types are those of
/// models whose weights are refused.
std::optional<DType> dtype_of(const JsonFields& fields) {
  const char* const key = fields.has("dtype") ? "dtype" : "torch_dtype";
  if (!fields.has(key)) return std::nullopt;
  const std::string name = fields.text(key);
  if (name == "float32") return DType::f32;
  if (name == "float16") return DType::f16;
  if (name == "bfloat16") return DType::bf16;
  return std::nullopt;
}

/// Returns the ids of eos_token_id: one or a list.
std::vector<std::int32_t> ends_of(const JsonFields& fields) {
  constexpr const char* key = "eos_token_id";
  if (!fields.has(key)) return {};
  const nlohmann::json& value = fields.at(key);
  if (!value.is_array()) return {static_cast<std::int32_t>(fields.integer(key, 0, largest_extent))};
  std::vector<std::int32_t> ids;
  for (const nlohmann::json& id : value) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > std::uint64_t{largest_extent}) {
      fields.refuse(fmt::format("{} holds an element that is not a token", key));
    }
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

}  // namespace

LlamaConfig llama_config_from_json(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  const JsonFields fields(json, name);
  LlamaConfig config;
  read_kind(fields, config);
  const auto extent = [&](const char* key, std::optional<std::int64_t> fallback = std::nullopt) {
    return fields.integer(key, 1, largest_extent, fallback);
  };
  config.dim = extent("hidden_size");
  config.hidden_dim = extent("intermediate_size");
  config.layers = extent("num_hidden_layers");
  config.heads = extent("num_attention_heads");
  config.kv_heads = extent("num_key_value_heads", config.heads);
  if (!fields.has("head_dim") && config.dim % config.heads != 0) {
    fields.refuse(
        fmt::format("hidden_size is {} and num_attention_heads {}; the second must divide "
                    "the first, where there is no head_dim",
                    config.dim, config.heads));
  }
  config.head_dim = extent("head_dim", config.dim / config.heads);
  config.vocab = extent("vocab_size");
  config.max_positions = extent("max_position_embeddings", 2048);
  if (fields.text("model_type") == "mistral" && fields.has("sliding_window")) {
    config.max_positions = std::min(config.max_positions, extent("sliding_window"));
  }
  config.norm_epsilon = fields.number("rms_norm_eps", 1e-6);
  config.tied_embeddings = fields.flag("tie_word_embeddings", false);
  config.dtype = dtype_of(fields);
  // Texts of Qwen begin with no token, although there is one.
  if (!config.qkv_bias && !config.qk_norm) {
    config.bos = static_cast<std::int32_t>(fields.integer("bos_token_id", 0, largest_extent, -1));
  } else {
    config.bos = -1;
  }
  config.eos = ends_of(fields);
  read_rope(fields, config);
  try {
    config.check();
  } catch (const Error& error) {
    fields.refuse(error.what());
  }
  const auto scaled = scaled_weights_of(fields);
  const auto packed = scaled ? std::nullopt : packed_weights_of(fields);
  if (scaled || packed) {
    const MatrixFormat format = scaled ? MatrixFormat{.scaled = scaled} : packed->format();
    config.formats.layers.assign(static_cast<std::size_t>(config.layers),
                                 {format, format, format, format, format, format, format});
  }
  return config;
}

std::vector<std::int32_t> end_tokens_from_json(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  return ends_of(JsonFields(json, name));
}

LlamaConfig llama_config_from_file(const std::filesystem::path& path) {
  if (is_gguf(path)) return load_gguf(path).config;
  const auto file = MappedFile::open(path, most_model_json_bytes);
  return llama_config_from_json(file->text(), path.string());
}

}  // namespace greta::runtime
