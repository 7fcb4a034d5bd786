#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/random.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/llama_config.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "tests/layers.hpp"

/// Small model files for tests.
namespace greta::test {

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);  // some file systems write truncated files synchronously
  std::ofstream(path, std::ios::binary) << bytes;
}
inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<double> values_of(const runtime::WeightView& view) {
  std::vector<double> values(view.elements());
  view.read(0, values.size(), values.data());
  return values;
}

/// Returns the sum of all weights. It reads every byte, so that a view outside its file is
/// detected.
inline double sum_of(const runtime::LlamaModel& model) {
  double sum = 0;
  const auto add = [&](const runtime::WeightView& view) {
    for (const double value : values_of(view)) sum += value;
  };
  add(model.weights.embedding);
  for (const runtime::LlamaLayer& layer : model.weights.layers) {
    for (const runtime::WeightView& view :
         {layer.attn_norm, layer.wq, layer.wk, layer.wv, layer.wo, layer.ffn_norm}) {
      add(view);
    }
    for (const runtime::WeightView& view :
         {layer.gate, layer.up, layer.down, layer.bq, layer.bk, layer.bv, layer.bo, layer.b_gate,
          layer.b_up, layer.b_down, layer.q_norm, layer.k_norm, layer.router,
          layer.shared_router}) {
      if (view.data != nullptr) add(view);
    }
    for (const runtime::LlamaExpert& expert : layer.experts) {
      for (const runtime::WeightView& view : {expert.gate, expert.up, expert.down}) add(view);
    }
  }
  add(model.weights.final_norm);
  add(model.weights.head);
  return sum;
}

/// Expects f to throw an Error of one line that contains `words`.
template <typename F>
void expect_refused(const F& f, const std::string& words) {
  try {
    f();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return;
  }
  ADD_FAILURE() << "nothing was refused, where a message was expected with: " << words;
}

/// A tensor for a file.
struct FileTensor {
  std::string name;
  std::string type;  ///< "F16"
  std::vector<std::int64_t> shape;
  std::string data;
};

/// Returns whether the tensor is a projection's weight, or one of experts.
inline bool is_projection(const FileTensor& tensor) {
  return tensor.name.ends_with("proj.weight") || tensor.name.find(".experts.") != std::string::npos;
}

inline std::string safetensors_of(const nlohmann::json& header, const std::string& data) {
  const std::string text = header.dump();
  std::string bytes(8, '\0');
  const auto length = static_cast<std::uint64_t>(text.size());
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + text + data;
}
inline std::string safetensors_of(const std::vector<FileTensor>& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const FileTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.type},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
    data += tensor.data;
  }
  return safetensors_of(header, data);
}

/// Returns random numbers around 0 of the magnitude of a model's weights, as bytes of a type.
inline std::string random_weights(DType type, std::int64_t count, double size, std::uint64_t seed) {
  std::string bytes(bytes_of(type, static_cast<std::size_t>(count)), '\0');
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const double unit = static_cast<double>(mix64(seed + i) >> 11) * 0x1p-53;
    store_element(type, reinterpret_cast<std::byte*>(bytes.data()), i, (2 * unit - 1) * size);
  }
  return bytes;
}

/// A Llama in Hugging Face's format of a few kilobytes, with grouped KV heads.
struct TinyLlama {
  std::int64_t dim = 16, hidden = 24, layers = 2, heads = 4, kv_heads = 2, vocab = 300;
  DType dtype = DType::f32;
  bool tied = false;
  /// model_type: mistral, mixtral, qwen2, qwen2_moe, qwen3 and qwen3_moe are written as well.
  std::string kind = "llama";
  std::int64_t experts = 5, top_k = 2;                 ///< of mixtral and of those of Qwen
  std::int64_t expert_hidden = 40, shared_hidden = 8;  ///< of Qwen
  std::vector<std::int64_t> dense_layers{};            ///< of Qwen: mlp_only_layers
  bool attention_bias = false, mlp_bias = false;       ///< of llama; the first one also of Qwen3
  nlohmann::json more = nlohmann::json::object();      ///< further members of config.json

  nlohmann::json config() const {
    nlohmann::json json = {{"model_type", kind},
                           {"hidden_size", dim},
                           {"intermediate_size", hidden},
                           {"num_hidden_layers", layers},
                           {"num_attention_heads", heads},
                           {"num_key_value_heads", kv_heads},
                           {"vocab_size", vocab},
                           {"max_position_embeddings", 32},
                           {"rms_norm_eps", 1e-5},
                           {"rope_theta", 10000.0},
                           {"tie_word_embeddings", tied},
                           {"bos_token_id", 1},
                           {"eos_token_id", 2}};
    if (kind == "qwen3") json["head_dim"] = dim / heads;  // 128 by default
    if (attention_bias) json["attention_bias"] = true;
    if (mlp_bias) json["mlp_bias"] = true;
    if (kind == "mixtral") json["num_local_experts"] = experts;
    if (kind.ends_with("_moe")) {
      json["num_experts"] = experts;
      json["moe_intermediate_size"] = expert_hidden;
      json["mlp_only_layers"] = dense_layers;
      json["norm_topk_prob"] = kind == "qwen3_moe";
    }
    if (kind == "qwen2_moe") json["shared_expert_intermediate_size"] = shared_hidden;
    if (mixture()) json["num_experts_per_tok"] = top_k;
    json.update(more);
    return json;
  }
  bool mixture() const { return kind == "mixtral" || kind.ends_with("_moe"); }
  bool has_experts(std::int64_t layer) const {
    return mixture() &&
           std::find(dense_layers.begin(), dense_layers.end(), layer) == dense_layers.end();
  }
  std::vector<FileTensor> tensors() const {
    const std::string type = dtype == DType::f32 ? "F32" : dtype == DType::f16 ? "F16" : "BF16";
    std::vector<FileTensor> list;
    const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
      if (!name.ends_with(".bias")) name += ".weight";
      std::int64_t count = 1;
      for (const std::int64_t extent : shape) count *= extent;
      const double size = 2 / std::sqrt(static_cast<double>(shape.back()));
      list.push_back(
          {name, type, shape, random_weights(dtype, count, size, 1000000 * list.size())});
    };
    const std::int64_t kv_dim = dim / heads * kv_heads;
    add("model.embed_tokens", {vocab, dim});
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      add(prefix + "input_layernorm", {dim});
      add(prefix + "self_attn.q_proj", {dim, dim});
      add(prefix + "self_attn.k_proj", {kv_dim, dim});
      add(prefix + "self_attn.v_proj", {kv_dim, dim});
      add(prefix + "self_attn.o_proj", {dim, dim});
      if (attention_bias) add(prefix + "self_attn.o_proj.bias", {dim});
      if (kind.starts_with("qwen2") || attention_bias) {
        add(prefix + "self_attn.q_proj.bias", {dim});
        for (const char* part : {"k_proj", "v_proj"}) {
          add(prefix + "self_attn." + part + ".bias", {kv_dim});
        }
      }
      if (kind.starts_with("qwen3")) {
        for (const char* part : {"q_norm", "k_norm"}) {
          add(prefix + "self_attn." + part, {dim / heads});
        }
      }
      add(prefix + "post_attention_layernorm", {dim});
      add_networks(prefix, layer, add);
    }
    add("model.norm", {dim});
    if (!tied) add("lm_head", {vocab, dim});
    return list;
  }
  /// Adds the tensors of a layer's feed-forward network, or of its experts.
  template <typename Add>
  void add_networks(const std::string& prefix, std::int64_t layer, const Add& add) const {
    const auto network = [&](const std::string& name, std::int64_t size, const char* gate,
                             const char* up, const char* down) {
      add(prefix + name + gate, {size, dim});
      add(prefix + name + up, {size, dim});
      add(prefix + name + down, {dim, size});
    };
    if (!has_experts(layer)) {
      network("mlp.", hidden, "gate_proj", "up_proj", "down_proj");
      if (!mlp_bias) return;
      add(prefix + "mlp.gate_proj.bias", {hidden});
      add(prefix + "mlp.up_proj.bias", {hidden});
      add(prefix + "mlp.down_proj.bias", {dim});
      return;
    }
    const bool mixtral = kind == "mixtral";
    const std::string block = mixtral ? "block_sparse_moe." : "mlp.";
    add(prefix + block + "gate", {experts, dim});
    for (std::int64_t i = 0; i < experts; ++i) {
      const std::string name = block + "experts." + std::to_string(i) + ".";
      if (mixtral) {
        network(name, hidden, "w1", "w3", "w2");
      } else {
        network(name, expert_hidden, "gate_proj", "up_proj", "down_proj");
      }
    }
    if (kind != "qwen2_moe") return;
    network("mlp.shared_expert.", shared_hidden, "gate_proj", "up_proj", "down_proj");
    add(prefix + "mlp.shared_expert_gate", {1, dim});
  }
  /// Writes the folder with one weights file.
  void write(const std::filesystem::path& folder) const {
    write_file(folder / "config.json", config().dump());
    write_file(folder / "model.safetensors", safetensors_of(tensors()));
  }
  /// Writes the folder with every other tensor in the second of two files.
  void write_sharded(const std::filesystem::path& folder) const {
    write_file(folder / "config.json", config().dump());
    std::vector<FileTensor> shards[2];
    nlohmann::json map;
    const std::string names[] = {"model-00001-of-00002.safetensors",
                                 "model-00002-of-00002.safetensors"};
    const std::vector<FileTensor> all = tensors();
    for (std::size_t i = 0; i < all.size(); ++i) {
      shards[i % 2].push_back(all[i]);
      map[all[i].name] = names[i % 2];
    }
    for (std::size_t i = 0; i < 2; ++i) write_file(folder / names[i], safetensors_of(shards[i]));
    write_file(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  }
};

/// Mutates a file's contents like damage or an attack: changed bytes and digits, removed and
/// repeated parts.
inline std::string mutated(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) {
    return static_cast<std::size_t>(uniform_below(random, bound));
  };
  static const std::string likely = std::string("\0\xff\x7f\x80{}[]\",:-9", 13);
  for (std::size_t change = 0; change < 1 + below(3); ++change) {
    const std::size_t at = below(bytes.size());
    const std::size_t some = 1 + below(std::min<std::size_t>(16, bytes.size() - at));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes[at] = likely[below(likely.size())];
        break;
      case 2:
        bytes[at] = static_cast<char>('0' + below(10));
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, some));
        break;
      case 4:
        bytes.insert(at, std::string(some, '9'));
        break;
      default:
        if (bytes.size() > some) bytes.erase(at, some);
    }
  }
  return bytes;
}

/// Runs `load` on `times` mutations of a file in `folder`, and with `beginnings` on each of its
/// prefixes. Each call must succeed or throw an Error of one line. Returns the number of rejected
/// ones.
template <typename Load>
int refused_mutations(const std::filesystem::path& file, int times, bool beginnings,
                      const Load& load) {
  const std::string original = read_file(file);
  std::mt19937_64 random(20261120);
  int refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    write_file(file, bytes);
    try {
      load();
    } catch (const Error& error) {
      const std::string_view text = error.what();
      EXPECT_NE(text, "");
      EXPECT_EQ(text.find('\n'), std::string_view::npos) << text;
      EXPECT_LT(text.size(), 1000U) << text;
      ++refused;
    }
  };
  for (int i = 0; i < times; ++i) attempt(mutated(original, random));
  for (std::size_t length = 0; beginnings && length < original.size(); ++length) {
    attempt(original.substr(0, length));
  }
  write_file(file, original);
  return refused;
}

}  // namespace greta::test
