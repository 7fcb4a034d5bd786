#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/model/byte_formats.hpp"
#include "tests/pipeline/model_files.hpp"

/// Small checkpoints of numbers of eight bits for tests, as Hugging Face's folders have them.
namespace greta::test {

/// A Llama whose projections are e4m3 or integers, with random codes and scales.
struct TinyFp8 {
  enum class Scales { blocks, rows, tensor };
  Scales scales = Scales::blocks;
  TinyLlama tiny{.dim = 128, .hidden = 272, .heads = 8, .kv_heads = 4, .dtype = DType::bf16};
  bool input_scales = false;  ///< static activations, with a scale for each projection
  bool integers = false;      ///< int-quantized, with scales of rows or of all weights
  bool weights_only = false;  ///< of compressed-tensors: activations stay numbers

  static std::vector<TinyFp8> kinds() {
    return {{.scales = Scales::blocks},
            {.scales = Scales::rows},
            {.scales = Scales::tensor, .input_scales = true},
            {.scales = Scales::rows, .input_scales = true},
            {.scales = Scales::rows, .integers = true},
            {.scales = Scales::tensor, .input_scales = true, .integers = true}};
  }

  const char* name() const {
    if (integers) return scales == Scales::rows ? "integers_rows" : "integers_tensor";
    if (scales == Scales::rows) return input_scales ? "rows_static" : "rows";
    return scales == Scales::blocks ? "blocks" : "tensor";
  }

  nlohmann::json config() const {
    nlohmann::json json = tiny.config();
    nlohmann::json& quantisation = json["quantization_config"];
    if (scales == Scales::rows || integers) {
      quantisation = compressed_config();
    } else {
      quantisation = {{"quant_method", "fp8"},
                      {"activation_scheme", input_scales ? "static" : "dynamic"}};
      if (scales == Scales::blocks) quantisation["weight_block_size"] = {128, 128};
    }
    json["torch_dtype"] = "bfloat16";
    return json;
  }

  /// As llm-compressor writes it.
  nlohmann::json compressed_config() const {
    const char* const type = integers ? "int" : "float";
    const nlohmann::json weights = {{"num_bits", 8},
                                    {"type", type},
                                    {"strategy", scales == Scales::rows ? "channel" : "tensor"},
                                    {"symmetric", true},
                                    {"dynamic", false}};
    nlohmann::json activations = {{"num_bits", 8},
                                  {"type", type},
                                  {"strategy", input_scales ? "tensor" : "token"},
                                  {"symmetric", true},
                                  {"dynamic", !input_scales}};
    if (weights_only) activations = nullptr;
    return {{"quant_method", "compressed-tensors"},
            {"format", integers ? "int-quantized" : "float-quantized"},
            {"ignore", {"lm_head"}},
            {"config_groups",
             {{"group_0",
               {{"targets", {"Linear"}},
                {"weights", weights},
                {"input_activations", activations},
                {"output_activations", nullptr}}}}}};
  }

  std::vector<FileTensor> tensors() const {
    const kernels::ByteFormat format =
        integers ? kernels::ByteFormat::int8 : kernels::ByteFormat::e4m3;
    const double largest = traits(format).largest;
    std::vector<FileTensor> list;
    std::uint64_t seed = 77;
    for (const FileTensor& tensor : tiny.tensors()) {
      if (!is_projection(tensor)) {
        list.push_back(tensor);
        continue;
      }
      const std::int64_t n = tensor.shape[0], k = tensor.shape[1];
      std::string codes;
      for (std::int64_t i = 0; i < n * k; ++i) {
        const double unit = static_cast<double>(mix64(++seed) >> 11) * 0x1p-53;
        codes += static_cast<char>(kernels::encode_byte(format, largest * (2 * unit - 1)));
      }
      list.push_back({tensor.name, integers ? "I8" : "F8_E4M3", tensor.shape, codes});
      const std::int64_t down = (n + 127) / 128, across = (k + 127) / 128;
      const std::vector<std::int64_t> shape = scales == Scales::blocks ? std::vector{down, across}
                                              : scales == Scales::rows
                                                  ? std::vector<std::int64_t>{n, 1}
                                                  : std::vector<std::int64_t>{};
      std::int64_t count = 1;
      for (const std::int64_t extent : shape) count *= extent;
      const DType type = scales == Scales::rows ? DType::bf16 : DType::f32;
      std::string values(bytes_of(type, static_cast<std::size_t>(count)), '\0');
      for (std::int64_t i = 0; i < count; ++i) {
        const double unit = static_cast<double>(mix64(++seed) >> 11) * 0x1p-53;
        store_element(type, reinterpret_cast<std::byte*>(values.data()),
                      static_cast<std::size_t>(i),
                      (1 + unit) / largest / std::sqrt(static_cast<double>(k)));
      }
      const char* const suffix = scales == Scales::blocks ? "_scale_inv" : "_scale";
      list.push_back({tensor.name + suffix, type == DType::f32 ? "F32" : "BF16", shape, values});
      if (!input_scales) continue;
      const std::string prefix = tensor.name.substr(0, tensor.name.size() - 6);
      const double unit = static_cast<double>(mix64(++seed) >> 11) * 0x1p-53;
      std::string input(4, '\0');
      store_element(DType::f32, reinterpret_cast<std::byte*>(input.data()), 0,
                    (1 + unit) / largest);
      list.push_back({prefix + "input_scale", "F32", {}, input});
      list.push_back({prefix + "output_scale", "F32", {}, std::string(4, '\0')});
    }
    return list;
  }

  void write(const std::filesystem::path& folder) const {
    write_file(folder / "config.json", config().dump());
    write_file(folder / "model.safetensors", safetensors_of(tensors()));
  }
};

}  // namespace greta::test
