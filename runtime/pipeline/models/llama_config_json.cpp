#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/fp4_weights.hpp"
#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"
#include "runtime/pipeline/models/formats/packed_weights.hpp"
#include "runtime/pipeline/models/formats/scaled_weights.hpp"
#include "runtime/pipeline/models/llama_config.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t largest_extent = std::numeric_limits<std::int32_t>::max();

/// A model that can be run, with what its library takes for keys that a file does not have.
struct Kind {
  std::string_view name;
  std::int64_t max_positions;
  std::int64_t kv_heads;  ///< 0: as many as of queries
  double norm_epsilon, rope_theta;
  std::int64_t head_dim;  ///< 0: the hidden size over the number of heads
  std::int64_t window;    ///< that tokens attend to, of Qwen if use_sliding_window; 0: all
};
constexpr Kind kinds[] = {
    {"llama", 2048, 0, 1e-6, 10000, 0, 0},          {"mistral", 131072, 8, 1e-6, 10000, 0, 4096},
    {"mixtral", 131072, 8, 1e-5, 1e6, 0, 0},        {"qwen2", 32768, 32, 1e-6, 10000, 0, 4096},
    {"qwen2_moe", 32768, 16, 1e-6, 10000, 0, 4096}, {"qwen3", 32768, 32, 1e-6, 10000, 128, 4096},
    {"qwen3_moe", 32768, 4, 1e-6, 10000, 0, 4096},
};

const Kind& kind_of(const JsonFields& fields) {
  const std::string type = fields.text("model_type");
  std::vector<std::string_view> known;
  for (const Kind& kind : kinds) {
    if (kind.name == type) return kind;
    known.push_back(kind.name);
  }
  fields.refuse(fmt::format("model_type is '{}'; allowed: {}", type, fmt::join(known, ", ")));
}

void check_rotated(const JsonFields& fields) {
  if (fields.number("partial_rotary_factor", 1) == 1) return;
  fields.refuse("partial_rotary_factor isn't 1: heads that are rotated in part");
}

/// Reads what the models differ in. Rejects features that this architecture lacks.
void read_kind(const JsonFields& fields, LlamaConfig& config) {
  const std::string_view type = kind_of(fields).name;
  config.qkv_bias = type.starts_with("qwen2");
  config.qk_norm = type.starts_with("qwen3");
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    fields.refuse(fmt::format("hidden_act is '{}'; allowed: silu, swish", activation));
  }
  const bool llama = type == "llama";
  for (const auto& [name, known] :
       {std::pair("attention_bias", llama || config.qk_norm), {"mlp_bias", llama}}) {
    if (fields.flag(name, false) && !known) {
      fields.refuse(fmt::format("{} is true; allowed with {}: false", name, type));
    }
  }
  if (fields.flag("attention_bias", false)) config.qkv_bias = config.out_bias = true;
  config.mlp_bias = fields.flag("mlp_bias", false);
  check_rotated(fields);
}

/// Reads YaRN. Its publication's factor of rotated heads is that of the ratio of two others where
/// there are such.
void read_yarn(const JsonFields& fields, RopeScaling& scaling) {
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.fast_rotations = fields.number("beta_fast", scaling.fast_rotations);
  scaling.slow_rotations = fields.number("beta_slow", scaling.slow_rotations);
  scaling.whole_pairs = fields.flag("truncate", true);
  const double own = fields.number("mscale", 0), all = fields.number("mscale_all_dim", 0);
  const double usual = own != 0 && all != 0 ? yarn_attention_factor(scaling.factor, own) /
                                                  yarn_attention_factor(scaling.factor, all)
                                            : yarn_attention_factor(scaling.factor);
  scaling.attention_factor = fields.number("attention_factor", usual);
}

/// Reads how frequencies are scaled. Dynamic scaling begins after the positions of the model.
RopeScaling scaling_of(const JsonFields& model, const JsonFields& fields, std::int64_t positions) {
  RopeScaling scaling;
  for (const char* layers : {"full_attention", "sliding_attention"}) {
    if (fields.has(layers))
      fields.refuse(fmt::format("has {}; allowed: one kind for all layers", layers));
  }
  const std::string kind = fields.text("rope_type", fields.text("type", "default"));
  if (kind == "default" || kind == "dynamic") return scaling;
  if (kind != "linear" && kind != "llama3" && kind != "yarn") {
    fields.refuse(fmt::format("the kind is '{}'; allowed: default, dynamic, linear, llama3, yarn",
                              kind.substr(0, 40)));
  }
  scaling.factor = fields.number("factor");
  if (kind == "linear") {
    scaling.kind = RopeScaling::Kind::linear;
    return scaling;
  }
  // Some files have it beside the other parameters.
  constexpr const char* original = "original_max_position_embeddings";
  const JsonFields& has_original = fields.has(original) || !model.has(original) ? fields : model;
  scaling.original_positions = has_original.integer(
      original, 1, largest_extent, kind == "yarn" ? std::optional(positions) : std::nullopt);
  if (kind == "yarn") {
    read_yarn(fields, scaling);
    return scaling;
  }
  scaling.kind = RopeScaling::Kind::llama3;
  scaling.low_frequency_factor = fields.number("low_freq_factor");
  scaling.high_frequency_factor = fields.number("high_freq_factor");
  return scaling;
}

void read_rope(const JsonFields& fields, LlamaConfig& config) {
  config.rope_style = RopeStyle::half;
  config.rope_theta = fields.number("rope_theta", kind_of(fields).rope_theta);
  // Later versions of the library store all of it in rope_parameters.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!fields.has(key)) continue;
    const JsonFields rope = fields.object(key);
    check_rotated(rope);
    config.rope_theta = rope.number("rope_theta", config.rope_theta);
    config.rope_scaling = scaling_of(fields, rope, config.max_positions);
  }
  // Models with YaRN are trained for the positions that it adds, which their files may not count.
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind != RopeScaling::Kind::yarn) return;
  const double reached = scaling.factor * static_cast<double>(scaling.original_positions);
  if (reached > static_cast<double>(config.max_positions) && reached <= double{largest_extent}) {
    config.max_positions = static_cast<std::int64_t>(reached);
  }
}

/// Reads the window that tokens attend to; std::nullopt if they attend to all.
std::optional<std::int64_t> window_of(const JsonFields& fields, std::int64_t layers) {
  constexpr const char* key = "sliding_window";
  const Kind& kind = kind_of(fields);
  const bool qwen = kind.name.starts_with("qwen");
  if (kind.name == "llama" || (qwen && !fields.flag("use_sliding_window", false))) {
    return std::nullopt;
  }
  // Of most kinds of Qwen, the first layers have no window.
  const std::int64_t first = fields.integer("max_window_layers", 0, largest_extent, 28);
  if (qwen && kind.name != "qwen3_moe" && !fields.has("layer_types") && first >= layers) {
    return std::nullopt;
  }
  const bool usual = !fields.names(key) && kind.window > 0;
  if (!usual && !fields.has(key)) return std::nullopt;
  return usual ? kind.window : fields.integer(key, 1, largest_extent);
}

/// Returns the layers that mlp_only_layers lists.
std::vector<std::int64_t> listed_layers(const JsonFields& fields) {
  constexpr const char* key = "mlp_only_layers";
  std::vector<std::int64_t> layers;
  if (!fields.has(key)) return layers;
  const nlohmann::json& list = fields.at(key);
  if (!list.is_array()) fields.refuse(fmt::format("{} isn't a list", key));
  for (const nlohmann::json& layer : list) {
    if (!layer.is_number_unsigned() || layer.get<std::uint64_t>() > std::uint64_t{largest_extent}) {
      fields.refuse(fmt::format("{} holds an element that is not a layer", key));
    }
    layers.push_back(layer.get<std::int64_t>());
  }
  return layers;
}

/// Reads the experts of Mixtral, and of Qwen2 and Qwen3. The layers that have them are found once
/// the number of layers is checked.
void read_experts(const JsonFields& fields, LlamaConfig& config) {
  const std::string type = fields.text("model_type");
  const bool mixtral = type == "mixtral";
  if (!mixtral && !type.ends_with("_moe")) return;
  LlamaExperts& experts = config.experts;
  experts.count =
      fields.integer(mixtral ? "num_local_experts" : "num_experts", 1, LlamaExperts::most);
  experts.top_k =
      fields.integer("num_experts_per_tok", 1, std::min(experts.count, LlamaExperts::most_top_k));
  if (mixtral) {
    experts.hidden_dim = config.hidden_dim;
    return;
  }
  experts.hidden_dim = fields.integer("moe_intermediate_size", 1, largest_extent);
  experts.renormalise = fields.flag("norm_topk_prob", false);
  if (type != "qwen2_moe") return;
  experts.shared_hidden_dim = fields.integer("shared_expert_intermediate_size", 1, largest_extent);
  if (!fields.flag("qkv_bias", true)) fields.refuse("qkv_bias is false; allowed: true");
}

/// Determines which layers have experts: one of `decoder_sparse_step`, without those that are
/// listed.
void read_dense_layers(const JsonFields& fields, LlamaConfig& config) {
  if (config.experts.count == 0 || fields.text("model_type") == "mixtral") return;
  const std::int64_t step = fields.integer("decoder_sparse_step", 1, largest_extent, 1);
  std::vector<std::int64_t> listed = listed_layers(fields);
  std::sort(listed.begin(), listed.end());
  auto& dense = config.experts.dense_layers;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const bool mlp = std::binary_search(listed.begin(), listed.end(), layer);
    if (mlp || (layer + 1) % step != 0) dense.push_back(layer);
  }
  if (static_cast<std::int64_t>(dense.size()) == config.layers) config.experts = {};
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

/// Sets the formats of quantised matrices, by quantization_config.
void read_formats(const JsonFields& fields, LlamaConfig& config) {
  const auto fp4 = fp4_weights_of(fields);
  const auto scaled = fp4 ? std::nullopt : scaled_weights_of(fields);
  const auto packed = fp4 || scaled ? std::nullopt : packed_weights_of(fields);
  if (packed && packed->reordered && config.experts.count > 0) {
    fields.refuse("quantization_config: experts must not be in activation order (desc_act)");
  }
  const bool mxfp4 = fp4 == Fp4Kind::mxfp4;
  if ((!scaled || scaled->weights_only) && !packed && !mxfp4) return;
  MatrixFormat format =
      scaled   ? MatrixFormat{.scaled = scaled->format}
      : packed ? packed->format()
               : MatrixFormat{WeightFormat::mxfp4, kernels::only_group(WeightFormat::mxfp4)};
  const MatrixFormat down = format;  // which has the order of hidden units
  format.order = packed && packed->reordered ? 1 : 0;
  config.formats.layers.assign(static_cast<std::size_t>(config.layers),
                               {format, format, format, format, format, format, down, {}, {}});
  // Others of fp8 become numbers.
  const bool kept = !scaled || !scaled->format.blocks || config.has_whole_blocks();
  for (std::int64_t i = 0; kept && i < config.layers; ++i) {
    if (!config.has_experts(i)) continue;
    LlamaLayerFormats& layer = config.formats.layers[static_cast<std::size_t>(i)];
    layer.expert_gate_up = layer.expert_down = format;
  }
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
  const Kind& kind = kind_of(fields);
  // One that is null means as many as of queries, of all kinds.
  const bool as_many = kind.kv_heads == 0 || fields.names("num_key_value_heads");
  config.kv_heads = extent("num_key_value_heads", as_many ? config.heads : kind.kv_heads);
  if (!fields.has("head_dim") && kind.head_dim == 0 && config.dim % config.heads != 0) {
    fields.refuse(
        fmt::format("hidden_size is {} and num_attention_heads {}; the second must divide "
                    "the first, where there is no head_dim",
                    config.dim, config.heads));
  }
  if (config.heads % config.kv_heads != 0) {
    fields.refuse(
        fmt::format("num_attention_heads is {} and num_key_value_heads {}; the second must divide "
                    "the first",
                    config.heads, config.kv_heads));
  }
  config.head_dim =
      extent("head_dim", kind.head_dim == 0 ? config.dim / config.heads : kind.head_dim);
  config.vocab = extent("vocab_size");
  config.max_positions = extent("max_position_embeddings", kind.max_positions);
  config.norm_epsilon = fields.number("rms_norm_eps", kind.norm_epsilon);
  if (!(config.norm_epsilon > 0 && config.norm_epsilon < 1))
    fields.refuse(
        fmt::format("rms_norm_eps is {}; allowed: above 0, below 1", config.norm_epsilon));
  config.tied_embeddings = fields.flag("tie_word_embeddings", false);
  config.dtype = dtype_of(fields);
  // Texts of Qwen begin with no token, although there is one.
  if (!kind.name.starts_with("qwen")) {
    config.bos = static_cast<std::int32_t>(fields.integer("bos_token_id", 0, largest_extent, -1));
  } else {
    config.bos = -1;
  }
  config.eos = ends_of(fields);
  read_rope(fields, config);
  const auto window = window_of(fields, config.layers);
  config.max_positions = std::min(config.max_positions, window.value_or(config.max_positions));
  read_experts(fields, config);
  try {
    config.check();
  } catch (const Error& error) {
    fields.refuse(error.what());
  }
  read_dense_layers(fields, config);
  read_formats(fields, config);
  return config;
}

std::vector<std::int32_t> end_tokens_from_json(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  return ends_of(JsonFields(json, name));
}

LlamaConfig llama_config_from_file(const std::filesystem::path& path) {
  if (is_gguf(path)) return load_gguf(path).config;
  return llama_config_from_json(config_text(path), path.string());
}

}  // namespace greta::runtime
