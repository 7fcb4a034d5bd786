#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "runtime/device/result.hpp"
#include "runtime/device/text/printable.hpp"
#include "runtime/pipeline/models/formats/gguf.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"
#include "runtime/pipeline/models/text/gguf_tokens.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t largest_gguf_extent = std::numeric_limits<std::int32_t>::max();
constexpr const char* divisors_name = "rope_freqs.weight";

constexpr ExpertNames gguf_experts{.router = "ffn_gate_inp.weight",
                                   .gate = "ffn_gate_exps.weight",
                                   .up = "ffn_up_exps.weight",
                                   .down = "ffn_down_exps.weight",
                                   .shared_router = "ffn_gate_inp_shexp.weight",
                                   .shared_gate = "ffn_gate_shexp.weight",
                                   .shared_up = "ffn_up_shexp.weight",
                                   .shared_down = "ffn_down_shexp.weight",
                                   .shared_router_is_vector = true};

constexpr std::array<std::string_view, 5> architectures{"llama", "qwen2", "qwen2moe", "qwen3",
                                                        "qwen3moe"};

constexpr LlamaNames gguf_names{.embedding = "token_embd.weight",
                                .final_norm = "output_norm.weight",
                                .head = "output.weight",
                                .layer = "blk.{}.",
                                .attn_norm = "attn_norm.weight",
                                .wq = "attn_q.weight",
                                .wk = "attn_k.weight",
                                .wv = "attn_v.weight",
                                .wo = "attn_output.weight",
                                .ffn_norm = "ffn_norm.weight",
                                .gate = "ffn_gate.weight",
                                .up = "ffn_up.weight",
                                .down = "ffn_down.weight",
                                .bq = "attn_q.bias",
                                .bk = "attn_k.bias",
                                .bv = "attn_v.bias",
                                .bo = "attn_output.bias",
                                .b_gate = "ffn_gate.bias",
                                .b_up = "ffn_up.bias",
                                .b_down = "ffn_down.bias",
                                .q_norm = "attn_q_norm.weight",
                                .k_norm = "attn_k_norm.weight",
                                .experts = gguf_experts};

/// Returns the names of a file: older converters wrote a tensor for each expert.
LlamaNames names_of(const GgufFile& file) {
  LlamaNames names = gguf_names;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!name.starts_with("blk.") || !name.ends_with(".ffn_gate.0.weight")) continue;
    names.experts.gate = "ffn_gate.{}.weight";
    names.experts.up = "ffn_up.{}.weight";
    names.experts.down = "ffn_down.{}.weight";
    break;
  }
  return names;
}

std::string shown_text(std::string_view text) {
  return one_line(text.substr(0, 60));
}

/// Returns a key of the architecture, such as "llama.block_count".
std::string key_of(const GgufMetadata& metadata, const std::string& key) {
  return std::string(metadata.text("general.architecture").value_or("")) + "." + key;
}

/// Rejects what changes the model and GRETA doesn't compute.
void refuse_others(const GgufMetadata& metadata) {
  const std::string_view type = metadata.text("general.type").value_or("model");
  if (type != "model") {
    metadata.refuse("general.type", fmt::format("is '{}'; allowed: model", shown_text(type)));
  }
  const auto architecture = metadata.text("general.architecture");
  if (!architecture) metadata.refuse("general.architecture", "is missing");
  if (std::find(architectures.begin(), architectures.end(), *architecture) == architectures.end()) {
    metadata.refuse("general.architecture",
                    fmt::format("is '{}'; allowed: {}", shown_text(*architecture),
                                fmt::join(architectures, ", ")));
  }
  if (!metadata.flag(key_of(metadata, "attention.causal"), true)) {
    metadata.refuse(key_of(metadata, "attention.causal"), "is false; allowed: true");
  }
  for (const char* name : {"attention.scale", "logit_scale", "embedding_scale", "residual_scale"}) {
    const std::string key = key_of(metadata, name);
    if (metadata.number(key, 0) != 0) {
      metadata.refuse(key, "changes the model in a way that isn't known; allowed: none, 0");
    }
  }
}

/// Reads YaRN as llama.cpp does: with its publication's factor of rotated heads.
void read_yarn(const GgufMetadata& metadata, RopeScaling& scaling) {
  const auto key = [&](const char* name) {
    return key_of(metadata, std::string("rope.scaling.") + name);
  };
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.original_positions = metadata.integer(
      key("original_context_length"), 1, largest_gguf_extent,
      metadata.integer(key_of(metadata, "context_length"), 1, largest_gguf_extent));
  scaling.fast_rotations = metadata.number(key("yarn_beta_fast"), scaling.fast_rotations);
  scaling.slow_rotations = metadata.number(key("yarn_beta_slow"), scaling.slow_rotations);
  scaling.attention_factor = yarn_attention_factor(scaling.factor);
  for (const auto& [name, usual] :
       {std::pair("yarn_ext_factor", 1), {"yarn_attn_factor", 1}, {"yarn_log_multiplier", 0}}) {
    if (metadata.number(key(name), usual) == usual) continue;
    metadata.refuse(key(name), fmt::format("isn't {}: another kind of YaRN", usual));
  }
}

/// Reads the factor by which positions are divided. A factor of 0 means none. As llama.cpp does,
/// takes a factor without a type for linear, and the older key where the newer one is missing.
void read_scaling(const GgufMetadata& metadata, RopeScaling& scaling) {
  const std::string type_key = key_of(metadata, "rope.scaling.type");
  const std::string newer_key = key_of(metadata, "rope.scaling.factor");
  const std::string older_key = key_of(metadata, "rope.scale_linear");
  const std::string attention_key = key_of(metadata, "rope.scaling.attn_factor");
  const std::string_view type = metadata.text(type_key).value_or("linear");
  if (type != "linear" && type != "none" && type != "yarn") {
    metadata.refuse(type_key,
                    fmt::format("is '{}'; allowed: none, linear, yarn", shown_text(type)));
  }
  const std::string& key = metadata.has(newer_key) ? newer_key : older_key;
  const double factor = metadata.number(key, 0);
  if (metadata.number(attention_key, 1) != 1) {
    metadata.refuse(attention_key, "isn't 1: rotated heads that are scaled");
  }
  if (factor == 0 || factor == 1) return;
  if (type == "none") {
    metadata.refuse(key, fmt::format("is {}, but {} is none; allowed: 0, 1", factor, type_key));
  }
  if (factor < 1) metadata.refuse(key, fmt::format("is {}; allowed: 0, 1 and more", factor));
  scaling.factor = factor;
  scaling.kind = RopeScaling::Kind::linear;
  if (type == "yarn") read_yarn(metadata, scaling);
}

void read_rope(const GgufFile& file, LlamaConfig& config) {
  const GgufMetadata& metadata = file.metadata();
  // Converters interleave the rows of Llamas only.
  const bool llama = metadata.text("general.architecture") == "llama";
  config.rope_style = llama ? RopeStyle::interleaved : RopeStyle::half;
  config.rope_theta = metadata.number(key_of(metadata, "rope.freq_base"), 10000);
  const std::string dimensions = key_of(metadata, "rope.dimension_count");
  const std::int64_t rotated =
      metadata.integer(dimensions, 1, largest_gguf_extent, config.head_dim);
  if (rotated != config.head_dim) {
    metadata.refuse(dimensions,
                    fmt::format("is {}; allowed: {}, all of a head", rotated, config.head_dim));
  }
  read_scaling(metadata, config.rope_scaling);
  const auto found = file.tensors().find(divisors_name);
  if (found == file.tensors().end()) return;
  const StoredTensor& divisors = found->second;
  if (divisors.dtype != DType::f32 ||
      divisors.shape != std::vector<std::int64_t>{config.head_dim / 2}) {
    throw Error(fmt::format("{}: tensor '{}' must have {} numbers of type F32", metadata.name(),
                            divisors_name, config.head_dim / 2));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(config.head_dim / 2); ++i) {
    config.rope_divisors.push_back(load_element(DType::f32, divisors.data.data(), i));
  }
}

/// Reads the experts of a model. As in llama.cpp, an expert of Mixtral is as large as a
/// feed-forward network, and the architecture says whether weights are renormalised.
void read_experts(const GgufMetadata& metadata, LlamaConfig& config) {
  const std::string_view architecture = metadata.text("general.architecture").value_or("");
  const bool qwen = architecture.ends_with("moe");
  if (architecture != "llama" && !qwen) {
    static_cast<void>(metadata.integer(key_of(metadata, "expert_count"), 0, 0, 0));
    return;
  }
  LlamaExperts& experts = config.experts;
  const auto number = [&](const char* key, std::int64_t least, std::int64_t most,
                          std::optional<std::int64_t> fallback = std::nullopt) {
    return metadata.integer(key_of(metadata, key), least, most, fallback);
  };
  experts.count = number("expert_count", qwen ? 1 : 0, LlamaExperts::most,
                         qwen ? std::nullopt : std::optional<std::int64_t>(0));
  if (experts.count == 0) return;
  experts.top_k = number("expert_used_count", 1, std::min(experts.count, LlamaExperts::most_top_k));
  experts.hidden_dim = config.hidden_dim;
  if (!qwen) return;
  experts.hidden_dim = number("expert_feed_forward_length", 1, largest_gguf_extent,
                              std::max<std::int64_t>(1, config.hidden_dim / experts.top_k));
  experts.renormalise = architecture == "qwen3moe";
  if (architecture != "qwen2moe") return;
  experts.shared_hidden_dim =
      number("expert_shared_feed_forward_length", 1, largest_gguf_extent, config.hidden_dim);
}

LlamaConfig config_of(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  refuse_others(metadata);
  LlamaConfig config;
  const std::string_view architecture = metadata.text("general.architecture").value_or("");
  // Converters write biases if there are such, and no key.
  const auto has = [&](std::string_view name) {
    return file.tensors().count("blk.0." + std::string(name)) > 0;
  };
  config.qkv_bias = architecture.starts_with("qwen2") || has(gguf_names.bq);
  config.out_bias = has(gguf_names.bo);
  config.mlp_bias = has(gguf_names.b_down);
  config.qk_norm = architecture.starts_with("qwen3");
  const auto extent = [&](const char* key, std::optional<std::int64_t> fallback = std::nullopt) {
    return metadata.integer(key_of(metadata, key), 1, largest_gguf_extent, fallback);
  };
  config.dim = extent("embedding_length");
  config.hidden_dim = extent("feed_forward_length");
  config.layers = extent("block_count");
  config.heads = extent("attention.head_count");
  config.kv_heads = extent("attention.head_count_kv", config.heads);
  if (!metadata.has(key_of(metadata, "attention.key_length")) && config.dim % config.heads != 0) {
    metadata.refuse(key_of(metadata, "attention.head_count"),
                    fmt::format("is {} and doesn't divide {}, {}, where there is no {}",
                                config.heads, key_of(metadata, "embedding_length"), config.dim,
                                key_of(metadata, "attention.key_length")));
  }
  config.head_dim = extent("attention.key_length", config.dim / config.heads);
  if (extent("attention.value_length", config.head_dim) != config.head_dim) {
    metadata.refuse(key_of(metadata, "attention.value_length"),
                    "isn't " + key_of(metadata, "attention.key_length"));
  }
  config.max_positions = extent("context_length");
  // Up to a window's length, tokens attend to all.
  const std::string window = key_of(metadata, "attention.sliding_window");
  if (metadata.integer(window, 0, largest_gguf_extent, 0) > 0) {
    config.max_positions = std::min(config.max_positions, extent("attention.sliding_window"));
  }
  config.norm_epsilon = metadata.number(key_of(metadata, "attention.layer_norm_rms_epsilon"));
  const auto embedding = file.tensors().find(std::string(gguf_names.embedding));
  if (embedding == file.tensors().end() || embedding->second.shape.size() != 2) {
    throw Error(fmt::format("{}: has no matrix '{}'", metadata.name(), gguf_names.embedding));
  }
  config.vocab = embedding->second.shape[0];
  config.tied_embeddings = file.tensors().count(std::string(gguf_names.head)) == 0;
  config.dtype = embedding->second.dtype.value_or(DType::f16);
  const GgufEnds ends = gguf_ends(metadata);
  config.bos = ends.adds_bos ? ends.bos : -1;
  config.eos = ends.eos;
  read_rope(file, config);
  read_experts(metadata, config);
  try {
    config.check();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", metadata.name(), error.what()));
  }
  return config;
}

}  // namespace

LlamaModel load_gguf(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  LlamaModel model;
  model.path = path;
  model.files = file.files();
  model.config = config_of(file);
  ModelTensors tensors(path.string(), gguf_types_text());
  for (const auto& [name, tensor] : file.tensors()) tensors.add(name, tensor);
  model.weights = take_llama(tensors, model.config, names_of(file));
  model.config.formats = formats_of(model.weights);
  tensors.check_rest([](std::string_view name) {
    // The second one has the frequencies before their division, in older files.
    return name == divisors_name || name.ends_with(".attn_rot_embd");
  });
  return model;
}

}  // namespace greta::runtime
