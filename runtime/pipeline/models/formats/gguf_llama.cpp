#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/device/text/printable.hpp"
#include "runtime/pipeline/models/formats/gguf.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"
#include "runtime/pipeline/models/text/gguf_tokens.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t largest_gguf_extent = std::numeric_limits<std::int32_t>::max();
constexpr const char* divisors_name = "rope_freqs.weight";

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
                                .down = "ffn_down.weight"};

std::string shown_text(std::string_view text) {
  return one_line(text.substr(0, 60));
}

/// Rejects what changes the model and GRETA doesn't compute.
void refuse_others(const GgufMetadata& metadata) {
  const std::string_view type = metadata.text("general.type").value_or("model");
  if (type != "model") {
    metadata.refuse("general.type", fmt::format("is '{}'; allowed: model", shown_text(type)));
  }
  const auto architecture = metadata.text("general.architecture");
  if (!architecture) metadata.refuse("general.architecture", "is missing");
  if (*architecture != "llama") {
    metadata.refuse("general.architecture",
                    fmt::format("is '{}'; allowed: llama", shown_text(*architecture)));
  }
  const std::int64_t parts = metadata.integer("split.count", 0, 65535, 1);
  if (parts > 1) {
    metadata.refuse("split.count", fmt::format("is {}: the model is split into files; merge them "
                                               "with llama-gguf-split --merge",
                                               parts));
  }
  if (metadata.integer("llama.expert_count", 0, largest_gguf_extent, 0) > 0) {
    metadata.refuse("llama.expert_count", "isn't 0: models of experts can't be run");
  }
  for (const char* key : {"llama.attention.scale", "llama.attention.sliding_window",
                          "llama.logit_scale", "llama.embedding_scale", "llama.residual_scale"}) {
    if (metadata.number(key, 0) != 0) {
      metadata.refuse(key, "changes the model in a way that isn't known; allowed: none, 0");
    }
  }
}

/// Reads the factor by which positions are divided. A factor of 0 means none. As llama.cpp does,
/// takes a factor without a type for linear, and the older key where the newer one is missing.
void read_scaling(const GgufMetadata& metadata, RopeScaling& scaling) {
  constexpr const char* type_key = "llama.rope.scaling.type";
  constexpr const char* newer_key = "llama.rope.scaling.factor";
  constexpr const char* older_key = "llama.rope.scale_linear";
  const std::string_view type = metadata.text(type_key).value_or("linear");
  if (type != "linear" && type != "none") {
    metadata.refuse(type_key, fmt::format("is '{}'; allowed: none, linear", shown_text(type)));
  }
  const char* const key = metadata.has(newer_key) ? newer_key : older_key;
  const double factor = metadata.number(key, 0);
  if (metadata.number("llama.rope.scaling.attn_factor", 1) != 1) {
    metadata.refuse("llama.rope.scaling.attn_factor", "isn't 1: rotated heads that are scaled");
  }
  if (factor == 0 || factor == 1) return;
  if (type == "none") {
    metadata.refuse(key, fmt::format("is {}, but {} is none; allowed: 0, 1", factor, type_key));
  }
  if (factor < 1) metadata.refuse(key, fmt::format("is {}; allowed: 0, 1 and more", factor));
  scaling.kind = RopeScaling::Kind::linear;
  scaling.factor = factor;
}

void read_rope(const GgufFile& file, LlamaConfig& config) {
  const GgufMetadata& metadata = file.metadata();
  config.rope_style = RopeStyle::interleaved;
  config.rope_theta = metadata.number("llama.rope.freq_base", 10000);
  const std::int64_t rotated =
      metadata.integer("llama.rope.dimension_count", 1, largest_gguf_extent, config.head_dim);
  if (rotated != config.head_dim) {
    metadata.refuse("llama.rope.dimension_count",
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

LlamaConfig config_of(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  refuse_others(metadata);
  LlamaConfig config;
  const auto extent = [&](const char* key, std::optional<std::int64_t> fallback = std::nullopt) {
    return metadata.integer(std::string("llama.") + key, 1, largest_gguf_extent, fallback);
  };
  config.dim = extent("embedding_length");
  config.hidden_dim = extent("feed_forward_length");
  config.layers = extent("block_count");
  config.heads = extent("attention.head_count");
  config.kv_heads = extent("attention.head_count_kv", config.heads);
  if (!metadata.has("llama.attention.key_length") && config.dim % config.heads != 0) {
    metadata.refuse("llama.attention.head_count",
                    fmt::format("is {} and doesn't divide llama.embedding_length, {}, where there "
                                "is no llama.attention.key_length",
                                config.heads, config.dim));
  }
  config.head_dim = extent("attention.key_length", config.dim / config.heads);
  if (extent("attention.value_length", config.head_dim) != config.head_dim) {
    metadata.refuse("llama.attention.value_length", "isn't llama.attention.key_length");
  }
  config.max_positions = extent("context_length");
  config.norm_epsilon = metadata.number("llama.attention.layer_norm_rms_epsilon");
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
  model.files = {file.file()};
  model.config = config_of(file);
  ModelTensors tensors(path.string(), gguf_types_text());
  for (const auto& [name, tensor] : file.tensors()) tensors.add(name, tensor);
  model.weights = take_llama(tensors, model.config, gguf_names);
  model.config.formats = formats_of(model.weights);
  tensors.check_rest([](std::string_view name) {
    // The second one has the frequencies before their division, in older files.
    return name == divisors_name || name.ends_with(".attn_rot_embd");
  });
  return model;
}

}  // namespace greta::runtime
