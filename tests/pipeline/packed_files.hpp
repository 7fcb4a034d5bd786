#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/pipeline/model_files.hpp"

/// Small checkpoints of AWQ, GPTQ and compressed-tensors for tests, packed as these projects
/// publish it.
namespace greta::test {

/// A Llama whose projections are packed in 4 bits, or as GPTQ in 8, and the weights that they stand
/// for.
struct TinyPacked {
  TinyLlama tiny{.dim = 128, .hidden = 256, .heads = 8, .kv_heads = 4, .dtype = DType::f16};
  std::string method = "awq";  ///< or "gptq", "compressed-tensors"
  std::int64_t group = 64;
  int bits = 4;
  bool sym = false;        ///< all zero points are 8, or with 8 bits 128
  bool second = false;     ///< gptq_v2
  std::string only{};      ///< what the names of packed projections contain
  std::string sym_only{};  ///< what the names of those contain whose zero points are as with `sym`
  bool extras = false;     ///< g_idx and bias, as exporters of GPTQ write them
  /// GPTQ's activation order: groups are not of consecutive weights. Queries, keys and values share
  /// an order, and so do gates and ups, unless `apart` is set.
  bool desc_act = false;
  bool apart = false;
  nlohmann::json more = nlohmann::json::object();  ///< further members of quantization_config

  nlohmann::json config() const {
    nlohmann::json json = tiny.config();
    nlohmann::json& quantisation = json["quantization_config"];
    json["torch_dtype"] = "float16";
    if (compressed()) {
      quantisation = compressed_config();
      quantisation.update(more);
      return json;
    }
    quantisation = {{"quant_method", method}, {"bits", bits}, {"group_size", group}};
    if (method == "awq") {
      quantisation.update({{"version", "gemm"}, {"zero_point", true}});
    } else {
      quantisation.update({{"desc_act", desc_act}, {"sym", sym}});
      if (second) quantisation["checkpoint_format"] = "gptq_v2";
    }
    quantisation.update(more);
    return json;
  }
  bool compressed() const { return method == "compressed-tensors"; }

  nlohmann::json compressed_config() const {
    const nlohmann::json weights = {
        {"num_bits", bits},
        {"type", "int"},
        {"strategy", group < 0 ? "channel" : "group"},
        {"group_size", group < 0 ? nlohmann::json() : nlohmann::json(group)},
        {"symmetric", sym},
        {"actorder", desc_act ? "group" : "static"}};
    return {{"quant_method", method},
            {"format", "pack-quantized"},
            {"ignore", {"lm_head"}},
            {"config_groups",
             {{"group_0",
               {{"targets", {"Linear"}}, {"weights", weights}, {"input_activations", nullptr}}}}}};
  }

  /// Returns the group of each weight of a row.
  std::vector<std::int64_t> groups_of(const std::string& name, std::int64_t k) const {
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < k; ++i) list.push_back(group < 0 ? 0 : i / group);
    if (!desc_act) return list;
    std::string inputs = name.substr(0, name.rfind(".weight"));
    if (!apart) {
      for (const char* one : {"k_proj", "v_proj"}) {
        if (inputs.ends_with(one)) inputs.replace(inputs.size() - 6, 6, "q_proj");
      }
      if (inputs.ends_with("gate_proj")) inputs.replace(inputs.size() - 9, 9, "up_proj");
    }
    std::uint64_t seed = 5;
    for (const char c : inputs) seed = 31 * seed + static_cast<unsigned char>(c);
    std::mt19937_64 random(seed);
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[uniform_below(random, i)]);
    }
    return list;
  }

  /// Returns the tensors of a folder. `values` receives the weights of each projection, row by row.
  std::vector<FileTensor> tensors(std::map<std::string, std::vector<double>>* values) const {
    std::vector<FileTensor> list;
    std::mt19937_64 random(7);
    for (const FileTensor& tensor : tiny.tensors()) {
      if (!is_projection(tensor) || tensor.name.find(only) == std::string::npos) {
        list.push_back(tensor);
        continue;
      }
      const std::string prefix = tensor.name.substr(0, tensor.name.size() - 6);
      TinyPacked own = *this;
      if (group < 0) own.group = tensor.shape[1];
      own.sym = sym || (!sym_only.empty() && tensor.name.find(sym_only) != std::string::npos);
      const Drawn drawn(own, tensor.shape[0], tensor.shape[1],
                        groups_of(tensor.name, tensor.shape[1]), random);
      if (values != nullptr) (*values)[tensor.name] = drawn.values();
      compressed() ? add_compressed(list, tensor.name, drawn) : add(list, prefix, drawn);
    }
    return list;
  }

  std::map<std::string, std::vector<double>> write(const std::filesystem::path& folder) const {
    std::map<std::string, std::vector<double>> values;
    write_file(folder / "config.json", config().dump());
    write_file(folder / "model.safetensors", safetensors_of(tensors(&values)));
    return values;
  }

 private:
  /// Random integers [n, k], zero points and scales [n, groups].
  struct Drawn {
    std::int64_t n, k, group;
    std::vector<std::int64_t> group_of;  ///< [k]
    std::vector<int> q, zero;
    std::vector<double> scale;

    Drawn(const TinyPacked& of, std::int64_t rows, std::int64_t cols,
          std::vector<std::int64_t> groups, std::mt19937_64& random)
        : n(rows), k(cols), group(of.group), group_of(std::move(groups)) {
      const auto draw = [&](int least, int most) {
        return least + static_cast<int>(
                           uniform_below(random, static_cast<std::uint64_t>(most - least + 1)));
      };
      for (std::int64_t i = 0; i < n * k; ++i) q.push_back(draw(0, (1 << of.bits) - 1));
      // GPTQ's first format stores one less than a zero point, which is 1 to 16, or to 255.
      const int least = of.method == "gptq" && !of.second ? 1 : 0;
      const int most = of.bits == 4 ? least + 15 : 255;
      for (std::int64_t i = 0; i < n * (k / group); ++i) {
        zero.push_back(of.sym ? 1 << (of.bits - 1) : draw(least, most));
        std::byte stored[2];
        store_element(DType::f16, stored, 0, draw(50, 400) * 1e-4 / std::sqrt(double(k) / 32));
        scale.push_back(load_element(DType::f16, stored, 0));
      }
    }
    std::size_t at(std::int64_t row, std::int64_t g) const {
      return static_cast<std::size_t>(row * (k / group) + g);
    }
    std::vector<double> values() const {
      std::vector<double> all;
      for (std::int64_t row = 0; row < n; ++row) {
        for (std::int64_t i = 0; i < k; ++i) {
          const std::size_t of = at(row, group_of[static_cast<std::size_t>(i)]);
          all.push_back((q[static_cast<std::size_t>(row * k + i)] - zero[of]) * scale[of]);
        }
      }
      return all;
    }
  };

  static std::string words(const std::vector<std::uint32_t>& list) {
    std::string bytes(4 * list.size(), '\0');
    std::memcpy(bytes.data(), list.data(), bytes.size());
    return bytes;
  }

  /// Integers and zero points are packed along columns and rows, from the lowest bits on.
  void add_compressed(std::vector<FileTensor>& list, const std::string& name,
                      const Drawn& d) const {
    const std::int64_t groups = d.k / d.group, of_word = 32 / bits;
    const std::int64_t high = (d.n + of_word - 1) / of_word;
    std::vector<std::uint32_t> integers(static_cast<std::size_t>(d.n * d.k / of_word)),
        zeros(static_cast<std::size_t>(high * groups)), order;
    std::string scales;
    for (std::int64_t row = 0; row < d.n; ++row) {
      for (std::int64_t i = 0; i < d.k; ++i) {
        const auto q = static_cast<std::uint32_t>(d.q[static_cast<std::size_t>(row * d.k + i)]);
        integers[static_cast<std::size_t>((row * d.k + i) / of_word)] |= q << bits * (i % of_word);
      }
      for (std::int64_t g = 0; g < groups; ++g) {
        const auto zero = static_cast<std::uint32_t>(d.zero[d.at(row, g)]);
        zeros[static_cast<std::size_t>(row / of_word * groups + g)] |= zero
                                                                       << bits * (row % of_word);
        std::byte stored[2];
        store_element(DType::f16, stored, 0, d.scale[d.at(row, g)]);
        scales.append(reinterpret_cast<const char*>(stored), 2);
      }
    }
    const std::int64_t shape[] = {d.n, d.k};
    list.push_back({name + "_packed", "I32", {d.n, d.k / of_word}, words(integers)});
    list.push_back({name + "_scale", "F16", {d.n, groups}, scales});
    list.push_back(
        {name + "_shape", "I64", {2}, {reinterpret_cast<const char*>(shape), sizeof(shape)}});
    if (!sym) list.push_back({name + "_zero_point", "I32", {high, groups}, words(zeros)});
    if (!desc_act) return;
    for (const std::int64_t g : d.group_of) order.push_back(static_cast<std::uint32_t>(g));
    list.push_back({name + "_g_idx", "I32", {d.k}, words(order)});
  }

  void add(std::vector<FileTensor>& list, const std::string& prefix, const Drawn& d) const {
    const bool awq = method == "awq";
    const std::int64_t groups = d.k / d.group, of_word = 32 / bits, width = d.n / of_word;
    // AutoAWQ packs column order[i] of 8 into nibble i.
    static constexpr int order[] = {0, 2, 4, 6, 1, 3, 5, 7};
    std::vector<std::uint32_t> integers(static_cast<std::size_t>(d.n * d.k / of_word)),
        zeros(static_cast<std::size_t>(groups * width));
    for (std::int64_t i = 0; i < d.k; ++i) {
      for (std::int64_t col = 0; col < d.n && !awq; ++col) {
        const int q = d.q[static_cast<std::size_t>(col * d.k + i)];
        integers[static_cast<std::size_t>(i / of_word * d.n + col)] |= static_cast<std::uint32_t>(q)
                                                                       << bits * (i % of_word);
      }
      for (std::int64_t word = 0; word < width && awq; ++word) {
        for (int j = 0; j < 8; ++j) {
          const int q = d.q[static_cast<std::size_t>((word * 8 + order[j]) * d.k + i)];
          integers[static_cast<std::size_t>(i * width + word)] |= static_cast<std::uint32_t>(q)
                                                                  << 4 * j;
        }
      }
    }
    std::string scales;
    for (std::int64_t g = 0; g < groups; ++g) {
      for (std::int64_t word = 0; word < width; ++word) {
        for (std::int64_t j = 0; j < of_word; ++j) {
          const std::int64_t col = word * of_word + (awq ? order[j] : j);
          const int zero = d.zero[d.at(col, g)] - (awq || second ? 0 : 1);
          zeros[static_cast<std::size_t>(g * width + word)] |= static_cast<std::uint32_t>(zero)
                                                               << bits * j;
        }
      }
      for (std::int64_t col = 0; col < d.n; ++col) {
        std::byte stored[2];
        store_element(DType::f16, stored, 0, d.scale[d.at(col, g)]);
        scales.append(reinterpret_cast<const char*>(stored), 2);
      }
    }
    list.push_back({prefix + "qweight", "I32",
                    awq ? std::vector{d.k, width} : std::vector{d.k / of_word, d.n},
                    words(integers)});
    list.push_back({prefix + "qzeros", "I32", {groups, width}, words(zeros)});
    list.push_back({prefix + "scales", "F16", {groups, d.n}, scales});
    if (!extras && !desc_act) return;
    std::vector<std::uint32_t> order_of_k;
    for (const std::int64_t g : d.group_of) order_of_k.push_back(static_cast<std::uint32_t>(g));
    list.push_back({prefix + "g_idx", "I32", {d.k}, words(order_of_k)});
    if (tiny.attention_bias || tiny.mlp_bias) return;  // biases of the model
    list.push_back(
        {prefix + "bias", "F16", {d.n}, std::string(static_cast<std::size_t>(2 * d.n), '\0')});
  }
};

}  // namespace greta::test
