#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"
#include "runtime/pipeline/models/formats/safetensors.hpp"

namespace greta::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* embedding_name = "model.embed_tokens.weight";
constexpr const char* head_name = "lm_head.weight";

bool there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

/// The tensors in all files of a model, by name.
class SafetensorsWeights {
 public:
  explicit SafetensorsWeights(fs::path folder) : folder_(std::move(folder)) {
    const fs::path single = folder_ / "model.safetensors",
                   index = folder_ / "model.safetensors.index.json";
    if (there(single)) {
      const SafeTensors file = open(single);
      for (const auto& [name, tensor] : file.tensors()) tensors_.emplace(name, tensor);
    } else if (there(index)) {
      read_shards(index);
    } else {
      throw Error(fmt::format("{}: has neither model.safetensors nor model.safetensors.index.json",
                              folder_.string()));
    }
  }

  bool has(const std::string& name) const { return tensors_.count(name) > 0; }

  /// Returns a tensor of this shape; a vector is one row.
  WeightView take(const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      throw Error(fmt::format("{}: has no tensor '{}'", folder_.string(), name));
    }
    const SafeTensor& tensor = found->second;
    if (!tensor.dtype || !kernels_convert(*tensor.dtype)) {
      std::vector<std::string_view> allowed;
      for (const DType type : converted_types()) allowed.push_back(traits(type).safetensors);
      throw Error(fmt::format("{}: tensor '{}' is of type {}; allowed: {}", folder_.string(), name,
                              tensor.type, fmt::join(allowed, ", ")));
    }
    if (tensor.shape != shape) {
      throw Error(fmt::format("{}: tensor '{}' is [{}]; by its config it must be [{}]",
                              folder_.string(), name, fmt::join(tensor.shape, ", "),
                              fmt::join(shape, ", ")));
    }
    taken_.insert(name);
    return {*tensor.dtype, shape.size() == 1 ? 1 : shape[0], shape.back(), tensor.data.data()};
  }

  /// Throws Error for a tensor that was not taken and is not ignorable.
  void check_rest(bool tied) const {
    for (const auto& [name, tensor] : tensors_) {
      const bool known = taken_.count(name) > 0 || name.ends_with("rotary_emb.inv_freq") ||
                         (tied && name == head_name);
      if (!known) {
        throw Error(fmt::format("{}: tensor '{}' is not a part of this architecture",
                                folder_.string(), name.substr(0, 100)));
      }
    }
  }

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
        tensors_.emplace(name, tensor);
      }
      for (const std::string& name : names) {
        if (opened.tensors().count(name) > 0) continue;
        fields.refuse(fmt::format("'{}' isn't in {}", name.substr(0, 100), shard));
      }
    }
  }

  fs::path folder_;
  std::map<std::string, SafeTensor> tensors_;
  std::set<std::string> taken_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

LlamaLayer layer_of(SafetensorsWeights& tensors, const LlamaConfig& c, std::int64_t index) {
  const auto take = [&](const char* name, const std::vector<std::int64_t>& shape) {
    return tensors.take(fmt::format("model.layers.{}.{}.weight", index, name), shape);
  };
  LlamaLayer layer;
  layer.attn_norm = take("input_layernorm", {c.dim});
  layer.wq = take("self_attn.q_proj", {c.q_dim(), c.dim});
  layer.wk = take("self_attn.k_proj", {c.kv_dim(), c.dim});
  layer.wv = take("self_attn.v_proj", {c.kv_dim(), c.dim});
  layer.wo = take("self_attn.o_proj", {c.dim, c.q_dim()});
  layer.ffn_norm = take("post_attention_layernorm", {c.dim});
  layer.gate = take("mlp.gate_proj", {c.hidden_dim, c.dim});
  layer.up = take("mlp.up_proj", {c.hidden_dim, c.dim});
  layer.down = take("mlp.down_proj", {c.dim, c.hidden_dim});
  return layer;
}

/// Returns the only checkpoint of llama2.c in a folder without config.json, whose other .bin files
/// are tokenizers; an empty path if there is none or there are several.
fs::path checkpoint_in(const fs::path& folder) {
  if (there(folder / "config.json")) return {};
  fs::path found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const fs::path& file = entry.path();
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

}  // namespace

LlamaModel load_hugging_face(const fs::path& folder) {
  LlamaModel model;
  model.path = folder;
  model.config = llama_config_from_file(folder / "config.json");
  add_ends(folder, model.config);
  const LlamaConfig& c = model.config;
  SafetensorsWeights tensors(folder);
  LlamaWeights& weights = model.weights;
  // A file may store tied weights under either name.
  const bool only_head =
      c.tied_embeddings && !tensors.has(embedding_name) && tensors.has(head_name);
  weights.embedding = tensors.take(only_head ? head_name : embedding_name, {c.vocab, c.dim});
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    weights.layers.push_back(layer_of(tensors, c, layer));
  }
  weights.final_norm = tensors.take("model.norm.weight", {c.dim});
  weights.head = c.tied_embeddings ? weights.embedding : tensors.take(head_name, {c.vocab, c.dim});
  tensors.check_rest(c.tied_embeddings);
  model.files = tensors.files();
  return model;
}

LlamaModel load_llama(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return load_checkpoint(path);
  const fs::path checkpoint = checkpoint_in(path);
  return checkpoint.empty() ? load_hugging_face(path) : load_checkpoint(checkpoint);
}

}  // namespace greta::runtime
