#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/pipeline/block_files.hpp"
#include "tests/pipeline/model_files.hpp"

/// Small GGUF files for tests.
namespace greta::test {

/// Writes a GGUF file. Values and tensors are written as told, valid or not.
class GgufWriter {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;               ///< of the tensors; written if it is not 32
  std::optional<std::uint64_t> tensor_count;  ///< instead of the number of tensors
  std::optional<std::uint64_t> value_count;   ///< instead of the number of values

  template <typename T>
  static std::string raw(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  template <typename T>
  static std::string raw(const std::vector<T>& list) {
    return {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T)};
  }
  static std::string text(const std::string& value) {
    return raw(std::uint64_t{value.size()}) + value;
  }

  /// Adds a value; `type` is its number in the format.
  void add(const std::string& key, std::uint32_t type, const std::string& bytes) {
    ++values_;
    metadata_ += text(key) + raw(type) + bytes;
  }
  void add_u32(const std::string& key, std::uint32_t value) { add(key, 4, raw(value)); }
  void add_f32(const std::string& key, float value) { add(key, 6, raw(value)); }
  void add_flag(const std::string& key, bool value) { add(key, 7, raw(std::uint8_t{value})); }
  void add_text(const std::string& key, const std::string& value) { add(key, 8, text(value)); }
  void add_texts(const std::string& key, const std::vector<std::string>& list) {
    std::string bytes = raw(std::uint32_t{8}) + raw(std::uint64_t{list.size()});
    for (const std::string& one : list) bytes += text(one);
    add(key, 9, bytes);
  }
  template <typename T>
  void add_numbers(const std::string& key, std::uint32_t type, const std::vector<T>& list) {
    add(key, 9, raw(type) + raw(std::uint64_t{list.size()}) + raw(list));
  }

  /// Adds the metadata of a tokenizer with 262 tokens: three control tokens, bytes, and three
  /// texts.
  void add_byte_tokens() {
    std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
    for (int byte = 0; byte < 256; ++byte) {
      std::string token(7, '\0');
      std::snprintf(token.data(), token.size(), "<0x%02X>", static_cast<unsigned>(byte));
      token.pop_back();
      tokens.push_back(token);
    }
    for (const char* token : {"\u2581", "h", "\u2581h"}) tokens.emplace_back(token);
    std::vector<std::int32_t> kinds(tokens.size(), 6);
    for (std::size_t i = 0; i < 3; ++i) kinds[i] = i == 0 ? 2 : 3;
    for (std::size_t i = 259; i < 262; ++i) kinds[i] = 1;
    add_text("tokenizer.ggml.model", "llama");
    add_texts("tokenizer.ggml.tokens", tokens);
    add_numbers("tokenizer.ggml.scores", 6, std::vector<float>(tokens.size(), -1));
    add_numbers("tokenizer.ggml.token_type", 5, kinds);
  }

  /// Adds a tensor after the last one, or at an offset of the data. The shape has the outermost
  /// extent first.
  void add_tensor(const std::string& name, std::uint32_t type,
                  const std::vector<std::int64_t>& shape, const std::string& data,
                  std::optional<std::uint64_t> offset = std::nullopt) {
    ++tensors_;
    list_.push_back({name, type, shape, data});
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    infos_ += text(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
      infos_ += raw(static_cast<std::uint64_t>(*extent));
    }
    infos_ += raw(type) + raw(offset.value_or(data_.size()));
    data_ += data;
  }

  std::string bytes() const {
    GgufWriter all = *this;
    if (alignment != 32) all.add_u32("general.alignment", static_cast<std::uint32_t>(alignment));
    std::string result = "GGUF" + raw(version) + raw(tensor_count.value_or(all.tensors_)) +
                         raw(value_count.value_or(all.values_)) + all.metadata_ + infos_;
    if (tensors_ == 0) return result;
    result.resize((result.size() + alignment - 1) / alignment * alignment);
    return result + data_;
  }

  /// Writes parts "model-00001-of-00003.gguf" and so on, of which the first one has the metadata
  /// and `first` tensors, and the others equal numbers of the others. Returns their names.
  std::vector<std::string> write_parts(const std::filesystem::path& folder, std::size_t count,
                                       std::size_t first) const {
    std::vector<std::string> names;
    for (std::size_t part = 0; part < count; ++part) {
      GgufWriter file;
      if (part == 0) file.metadata_ = metadata_, file.values_ = values_;
      file.add("split.no", 2, raw(static_cast<std::uint16_t>(part)));
      file.add("split.count", 2, raw(static_cast<std::uint16_t>(count)));
      file.add("split.tensors.count", 5, raw(static_cast<std::int32_t>(list_.size())));
      const std::size_t rest = list_.size() - first;
      const std::size_t begin = part == 0 ? 0 : first + rest * (part - 1) / (count - 1);
      const std::size_t end = part == 0 ? first : first + rest * part / (count - 1);
      for (std::size_t i = begin; i < end; ++i) {
        const Tensor& tensor = list_[i];
        file.add_tensor(tensor.name, tensor.type, tensor.shape, tensor.data);
      }
      std::string name(40, '\0');
      name.resize(static_cast<std::size_t>(
          std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.gguf", part + 1, count)));
      write_file(folder / name, file.bytes());
      names.push_back(name);
    }
    return names;
  }

 private:
  struct Tensor {
    std::string name;
    std::uint32_t type;
    std::vector<std::int64_t> shape;
    std::string data;
  };
  std::vector<Tensor> list_;
  std::string metadata_, infos_, data_;
  std::uint64_t values_ = 0, tensors_ = 0;
};

/// The same random Llama as a GGUF file and as a folder of Hugging Face, whose weights are f32.
struct TinyGguf {
  TinyLlama tiny;
  std::optional<BlockFormat> blocks{};  ///< of matrices; norms have the type of `tiny`
  /// Formats of matrices whose names in the folder contain these words, instead.
  std::vector<std::pair<std::string, BlockFormat>> others{};
  std::vector<float> divisors{};  ///< of rope's frequencies
  bool linear = false;            ///< whether rope is scaled by 2
  /// Numbers of types and bytes of tensors of the GGUF file that have others than `tiny`, by name.
  std::map<std::string, std::pair<std::uint32_t, std::string>> replaced{};
  bool split = false;  ///< a tensor for each expert, as older converters wrote them

  /// Numbers of the types in the format.
  static std::uint32_t number(DType type) {
    return type == DType::f32 ? 0 : type == DType::f16 ? 1 : 30;
  }
  static std::uint32_t number(BlockFormat format) {
    constexpr std::array<std::uint32_t, 15> numbers{8, 2,  12, 14, 6,  20, 11, 3,
                                                    7, 13, 10, 23, 39, 34, 35};
    return numbers.at(static_cast<std::size_t>(format));
  }

  std::string architecture() const {
    if (tiny.kind == "mistral" || tiny.kind == "mixtral") return "llama";
    std::string name = tiny.kind;
    name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
    return name;
  }

  /// Writes the metadata without the tokenizer's.
  void add_metadata(GgufWriter& file) const {
    const auto u32 = [&](const char* key, std::int64_t value) {
      file.add_u32(architecture() + "." + key, static_cast<std::uint32_t>(value));
    };
    file.add_text("general.architecture", architecture());
    u32("context_length", 32);
    u32("embedding_length", tiny.dim);
    u32("feed_forward_length", tiny.hidden);
    u32("block_count", tiny.layers);
    u32("attention.head_count", tiny.heads);
    u32("attention.head_count_kv", tiny.kv_heads);
    u32("rope.dimension_count", tiny.dim / tiny.heads);
    file.add_f32(architecture() + ".attention.layer_norm_rms_epsilon", 1e-5F);
    if (tiny.mixture()) {
      u32("expert_count", tiny.experts);
      u32("expert_used_count", tiny.top_k);
    }
    if (architecture().ends_with("moe")) u32("expert_feed_forward_length", tiny.expert_hidden);
    if (tiny.kind == "qwen2_moe") u32("expert_shared_feed_forward_length", tiny.shared_hidden);
    if (!linear) return;
    file.add_text(architecture() + ".rope.scaling.type", "linear");
    file.add_f32(architecture() + ".rope.scaling.factor", 2);
  }

  /// Writes both; `file` has the metadata and gets the tensors.
  void write(GgufWriter& file, const std::filesystem::path& folder) const {
    std::vector<FileTensor> twins;
    std::map<std::string, FileTensor> experts;  // matrices of all experts of a layer, by name
    std::uint64_t seed = 1;
    std::map<std::string, std::uint32_t> expert_types;
    for (FileTensor tensor : tiny.tensors()) {
      const bool matrix = tensor.shape.size() == 2;
      std::uint32_t type = number(tiny.dtype);
      std::string stored = tensor.data;
      std::optional<BlockFormat> format = blocks;
      for (const auto& [word, other] : others) {
        if (tensor.name.find(word) != std::string::npos) format = other;
      }
      if (format && matrix) {
        const std::int64_t elements = tensor.shape[0] * tensor.shape[1];
        const RandomBlocks random(
            *format, static_cast<std::size_t>(elements) / block_traits(*format).elements,
            2 / std::sqrt(static_cast<double>(tensor.shape[1])), seed++);
        type = number(*format);
        stored = random.bytes;
        tensor.type = "F32";
        tensor.data =
            GgufWriter::raw(std::vector<float>(random.values.begin(), random.values.end()));
      }
      twins.push_back(tensor);
      const std::string name = gguf_name(tensor.name);
      // The rows of other architectures keep their order.
      const bool llama = architecture() == "llama";
      if (llama && name.find("attn_q.") != std::string::npos)
        stored = interleaved(stored, tensor.shape[0], tiny.heads);
      if (llama && name.find("attn_k.") != std::string::npos) {
        stored = interleaved(stored, tensor.shape[0], tiny.kv_heads);
      }
      if (const auto at = name.find("_exps."); at != std::string::npos && split) {
        const std::size_t first = tensor.name.find(".experts.") + 9;
        const std::string expert = tensor.name.substr(first, tensor.name.find('.', first) - first);
        file.add_tensor(name.substr(0, at) + "." + expert + ".weight", type, tensor.shape, stored);
        continue;
      }
      if (name.find("_exps.") != std::string::npos) {
        FileTensor& all = experts[name];
        all.shape = {tiny.experts, tensor.shape[0], tensor.shape[1]};
        all.data += stored;
        expert_types[name] = type;
        continue;
      }
      if (const auto other = replaced.find(name); other != replaced.end()) {
        std::tie(type, stored) = other->second;
      }
      const bool vector = name.find("ffn_gate_inp_shexp") != std::string::npos;
      file.add_tensor(name, type, vector ? std::vector{tiny.dim} : tensor.shape, stored);
    }
    for (const auto& [name, all] : experts) {
      file.add_tensor(name, expert_types[name], all.shape, all.data);
    }
    if (!divisors.empty()) {
      file.add_tensor("rope_freqs.weight", 0, {static_cast<std::int64_t>(divisors.size())},
                      GgufWriter::raw(divisors));
    }
    write_file(folder / "model.gguf", file.bytes());
    write_file(folder / "config.json", tiny.config().dump());
    write_file(folder / "model.safetensors", safetensors_of(twins));
  }
  void write(const std::filesystem::path& folder) const {
    GgufWriter file;
    add_metadata(file);
    write(file, folder);
  }

 private:
  static std::string gguf_name(const std::string& name) {
    static const std::vector<std::pair<std::string, std::string>> names{
        {"model.embed_tokens", "token_embd"},
        {"model.norm", "output_norm"},
        {"lm_head", "output"},
        {"model.layers", "blk"},
        {"input_layernorm", "attn_norm"},
        {"self_attn.q_norm", "attn_q_norm"},
        {"self_attn.k_norm", "attn_k_norm"},
        {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"},
        {"post_attention_layernorm", "ffn_norm"},
        {"mlp.gate_proj", "ffn_gate"},
        {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"},
        {"mlp.gate.", "ffn_gate_inp."},
        {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
        {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
        {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
        {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
        {"block_sparse_moe.gate.", "ffn_gate_inp."},
        {"experts.gate_proj", "ffn_gate_exps"},
        {"experts.up_proj", "ffn_up_exps"},
        {"experts.down_proj", "ffn_down_exps"},
        {"experts.w1", "ffn_gate_exps"},
        {"experts.w3", "ffn_up_exps"},
        {"experts.w2", "ffn_down_exps"},
        {"mlp.ffn", "ffn"},
        {"block_sparse_moe.ffn", "ffn"}};
    std::string result = name;
    if (const auto at = result.find(".experts."); at != std::string::npos) {  // without the number
      const auto number = at + std::string(".experts").size();
      result.erase(number, result.find('.', number + 1) - number);
    }
    for (const auto& [from, to] : names) {
      if (const auto at = result.find(from); at != std::string::npos) {
        result.replace(at, from.size(), to);
      }
    }
    return result;
  }
  /// Returns rows whose halves of each head alternate.
  static std::string interleaved(const std::string& data, std::int64_t rows, std::int64_t heads) {
    const auto count = static_cast<std::size_t>(rows), pitch = data.size() / count;
    const std::size_t per_head = count / static_cast<std::size_t>(heads);
    std::string result;
    for (std::size_t row = 0; row < count; ++row) {
      const std::size_t head = row / per_head, at = row % per_head;
      const std::size_t from = head * per_head + at % 2 * (per_head / 2) + at / 2;
      result += data.substr(from * pitch, pitch);
    }
    return result;
  }
};

}  // namespace greta::test
