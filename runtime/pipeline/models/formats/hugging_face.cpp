#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/fp4_weights.hpp"
#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"
#include "runtime/pipeline/models/formats/model_tensors.hpp"
#include "runtime/pipeline/models/formats/packed_weights.hpp"
#include "runtime/pipeline/models/formats/safetensors.hpp"
#include "runtime/pipeline/models/formats/scaled_weights.hpp"

namespace greta::runtime {
namespace {

namespace fs = std::filesystem;

constexpr ExpertNames mixtral_experts{.router = "block_sparse_moe.gate.weight",
                                      .gate = "block_sparse_moe.experts.{}.w1.weight",
                                      .up = "block_sparse_moe.experts.{}.w3.weight",
                                      .down = "block_sparse_moe.experts.{}.w2.weight",
                                      .shared_router = {},
                                      .shared_gate = {},
                                      .shared_up = {},
                                      .shared_down = {}};

constexpr ExpertNames qwen_experts{.router = "mlp.gate.weight",
                                   .gate = "mlp.experts.{}.gate_proj.weight",
                                   .up = "mlp.experts.{}.up_proj.weight",
                                   .down = "mlp.experts.{}.down_proj.weight",
                                   .shared_router = "mlp.shared_expert_gate.weight",
                                   .shared_gate = "mlp.shared_expert.gate_proj.weight",
                                   .shared_up = "mlp.shared_expert.up_proj.weight",
                                   .shared_down = "mlp.shared_expert.down_proj.weight"};

constexpr LlamaNames folder_names{.embedding = "model.embed_tokens.weight",
                                  .final_norm = "model.norm.weight",
                                  .head = "lm_head.weight",
                                  .layer = "model.layers.{}.",
                                  .attn_norm = "input_layernorm.weight",
                                  .wq = "self_attn.q_proj.weight",
                                  .wk = "self_attn.k_proj.weight",
                                  .wv = "self_attn.v_proj.weight",
                                  .wo = "self_attn.o_proj.weight",
                                  .ffn_norm = "post_attention_layernorm.weight",
                                  .gate = "mlp.gate_proj.weight",
                                  .up = "mlp.up_proj.weight",
                                  .down = "mlp.down_proj.weight",
                                  .bq = "self_attn.q_proj.bias",
                                  .bk = "self_attn.k_proj.bias",
                                  .bv = "self_attn.v_proj.bias",
                                  .bo = "self_attn.o_proj.bias",
                                  .b_gate = "mlp.gate_proj.bias",
                                  .b_up = "mlp.up_proj.bias",
                                  .b_down = "mlp.down_proj.bias",
                                  .q_norm = "self_attn.q_norm.weight",
                                  .k_norm = "self_attn.k_norm.weight",
                                  .experts = qwen_experts};

/// Returns the names of a model_type. Files of a model that was stored without its head, as those
/// of Qwen3-Embedding, have no prefix.
LlamaNames names_of(const std::string& type, const ModelTensors& tensors) {
  LlamaNames names = folder_names;
  if (type == "mixtral") names.experts = mixtral_experts;
  constexpr std::string_view prefix = "model.";
  const std::string plain(names.embedding.substr(prefix.size()));
  if (tensors.has(std::string(names.embedding)) || !tensors.has(plain)) return names;
  for (std::string_view* name : {&names.embedding, &names.final_norm, &names.layer}) {
    name->remove_prefix(prefix.size());
  }
  return names;
}

bool there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

std::string types_text() {
  std::vector<std::string_view> types;
  for (const DType type : converted_types()) types.push_back(traits(type).safetensors);
  return fmt::format("{}", fmt::join(types, ", "));
}

/// Returns the files of a folder, as far as they can be listed.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    files.push_back(at->path());
  }
  return files;
}

/// Returns the only file of weights in a folder, which may have any name; an empty path if there is
/// none or there are several.
fs::path only_safetensors(const fs::path& folder) {
  fs::path found;
  for (const fs::path& file : files_of(folder)) {
    if (file.extension() != ".safetensors") continue;
    if (!found.empty()) return {};
    found = file;
  }
  return found;
}

/// Reads the tensors in all files of a model.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(fs::path folder)
      : folder_(std::move(folder)), tensors_(folder_.string(), types_text()) {
    const fs::path index = folder_ / "model.safetensors.index.json";
    fs::path single = folder_ / "model.safetensors";
    if (!there(single) && !there(index)) single = only_safetensors(folder_);
    if (!single.empty() && there(single)) {
      const SafeTensors file = open(single);
      for (const auto& [name, tensor] : file.tensors()) tensors_.add(name, tensor);
    } else if (there(index)) {
      read_shards(index);
    } else {
      throw Error(fmt::format("{}: has neither model.safetensors nor model.safetensors.index.json",
                              folder_.string()));
    }
  }

  ModelTensors& tensors() { return tensors_; }
  std::vector<std::shared_ptr<const MappedFile>> files() const { return files_; }

 private:
  SafeTensors open(const fs::path& path) {
    SafeTensors file = SafeTensors::open(path);
    files_.push_back(file.file());
    return file;
  }

  void read_shards(const fs::path& index) {
    const auto file = MappedFile::open(index, most_model_json_bytes);
    const nlohmann::json json = parse_json(file->text(), index.string());
    const JsonFields fields = JsonFields(json, index.string()).object("weight_map");
    std::map<std::string, std::set<std::string>> shards;  // tensor names by file
    for (const auto& [name, value] : json.at("weight_map").items()) {
      const std::string shard = fields.text(name);
      if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
          shard.find('\0') != std::string::npos) {
        fields.refuse(fmt::format("a shard's name must be a file of the folder; '{}' isn't",
                                  shard.substr(0, 100)));
      }
      shards[shard].insert(name);
    }
    for (const auto& [shard, names] : shards) {
      const SafeTensors opened = open(folder_ / shard);
      for (const auto& [name, tensor] : opened.tensors()) {
        if (names.count(name) == 0) {
          fields.refuse(fmt::format("doesn't say that '{}' is in {}", name.substr(0, 100), shard));
        }
        tensors_.add(name, tensor);
      }
      for (const std::string& name : names) {
        if (opened.tensors().count(name) > 0) continue;
        fields.refuse(fmt::format("'{}' isn't in {}", name.substr(0, 100), shard));
      }
    }
  }

  fs::path folder_;
  ModelTensors tensors_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

/// Returns the only checkpoint of llama2.c in a folder without config.json, whose other .bin files
/// are tokenizers; an empty path if there is none or there are several.
fs::path checkpoint_in(const fs::path& folder) {
  if (there(folder / "config.json")) return {};
  fs::path found;
  for (const fs::path& file : files_of(folder)) {
    const std::string name = file.filename().string();
    if (file.extension() != ".bin" || name.starts_with("tok") || name.starts_with("pytorch_model"))
      continue;
    if (!found.empty()) return {};
    found = file;
  }
  return found;
}

/// Adds end tokens that only generation_config.json lists, as for chat models.
void add_ends(const fs::path& folder, LlamaConfig& config) {
  const fs::path path = folder / "generation_config.json";
  if (!there(path)) return;
  const auto file = MappedFile::open(path, most_model_json_bytes);
  for (const std::int32_t id : end_tokens_from_json(file->text(), path.string())) {
    if (id >= config.vocab) {
      throw Error(fmt::format("{}: eos_token_id {} is not one of {} tokens", path.string(), id,
                              config.vocab));
    }
    const bool known = std::find(config.eos.begin(), config.eos.end(), id) != config.eos.end();
    if (!known) config.eos.push_back(id);
  }
}

/// Returns a quantize_config.json as quantization_config. What is wrong with it is refused here, by
/// its name.
nlohmann::json settings_of_gptq(const fs::path& path) {
  const auto file = MappedFile::open(path, most_model_json_bytes);
  nlohmann::json json = parse_json(file->text(), path.string());
  const JsonFields fields(json, path.string());
  if (!fields.has("quant_method")) json["quant_method"] = "gptq";
  if (fields.text("quant_method") != "fp8") static_cast<void>(packed_weights_in(fields));
  return json;
}

/// The same of a hf_quant_config.json.
nlohmann::json settings_of_modelopt(const fs::path& path) {
  const auto file = MappedFile::open(path, most_model_json_bytes);
  const nlohmann::json json = parse_json(file->text(), path.string());
  static_cast<void>(JsonFields(json, path.string()).object("quantization").text("quant_algo"));
  nlohmann::json settings = json.at("quantization");
  settings["quant_method"] = "modelopt";
  const nlohmann::json config = {{"quantization_config", settings}};
  static_cast<void>(scaled_weights_of(JsonFields(config, path.string())));
  return settings;
}

/// Returns whether a tensor is a scale of attention in eight bits, as files have it for caches of
/// fp8. Caches are numbers here.
bool scales_cache(std::string_view name) {
  constexpr std::string_view ends[] = {".k_scale", ".v_scale", ".kv_scale", ".q_scale",
                                       ".prob_output_scale"};
  return name.find(".self_attn.") != std::string_view::npos &&
         std::any_of(std::begin(ends), std::end(ends),
                     [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

std::string config_text(const fs::path& path) {
  const auto file = MappedFile::open(path, most_model_json_bytes);
  const fs::path gptq = path.parent_path() / "quantize_config.json",
                 modelopt = path.parent_path() / "hf_quant_config.json";
  if (path.filename() != "config.json" || (!there(gptq) && !there(modelopt))) {
    return std::string(file->text());
  }
  nlohmann::json json = parse_json(file->text(), path.string());
  if (quantisation_of(JsonFields(json, path.string()))) return std::string(file->text());
  json["quantization_config"] =
      there(gptq) ? settings_of_gptq(gptq) : settings_of_modelopt(modelopt);
  return json.dump();
}

LlamaModel load_hugging_face(const fs::path& folder) {
  LlamaModel model;
  model.path = folder;
  const fs::path config = folder / "config.json";
  const std::string text = config_text(config);
  model.config = llama_config_from_json(text, config.string());
  add_ends(folder, model.config);
  SafetensorsReader reader(folder);
  const nlohmann::json json = parse_json(text, config.string());
  const JsonFields fields(json, config.string());
  const LlamaNames names = names_of(fields.text("model_type"), reader.tensors());
  const auto fp4 = fp4_weights_of(fields);
  const auto scaled = fp4 ? std::nullopt : scaled_weights_of(fields);
  if (fp4) {
    Fp4Reader reads(reader.tensors(), *fp4, folder.string());
    model.weights = take_llama(
        reader.tensors(), model.config, names,
        [&](const std::string& name, const auto& shape) { return reads.take(name, shape); });
    model.converted = reads.memory();
  } else if (scaled) {
    ScaledReader reads(reader.tensors(), *scaled, folder.string());
    model.weights = take_llama(
        reader.tensors(), model.config, names,
        [&](const std::string& name, const auto& shape) { return reads.take(name, shape); });
    share_input_scales(model.weights);
    model.converted = reads.memory();
  } else if (const auto packed = packed_weights_of(fields)) {
    WeightUnpacker unpacker(reader.tensors(), *packed, folder.string(), model.config);
    model.weights = take_llama(
        reader.tensors(), model.config, names,
        [&](const std::string& name, const auto& shape) { return unpacker.take(name, shape); });
    unpacker.renumber_hidden(model.weights);
    model.converted = unpacker.memory();
  } else {
    model.weights = take_llama(reader.tensors(), model.config, names);
  }
  model.config.formats = formats_of(model.weights);
  reader.tensors().check_rest([&](std::string_view name) {
    return name.ends_with("rotary_emb.inv_freq") || scales_cache(name) ||
           (scaled && ScaledReader::ignored(name)) ||
           (model.config.tied_embeddings && name == folder_names.head);
  });
  model.files = reader.files();
  return model;
}

LlamaModel load_llama(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return is_gguf(path) ? load_gguf(path) : load_checkpoint(path);
  const fs::path checkpoint = checkpoint_in(path);
  return checkpoint.empty() ? load_hugging_face(path) : load_checkpoint(checkpoint);
}

}  // namespace greta::runtime
