// Protects: checkpoints of compressed-tensors with weights of four bits that are numbers, mxfp4 and
// nvfp4, are read as their codes and scales say, by the same weights or as numbers; and others are
// refused with one line.

#include <gtest/gtest.h>

#include <map>

#include "runtime/pipeline/models/llama_weights.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::fp4_weights_test {
namespace {

/// A Llama whose projections are numbers e2m1, with random codes and scales.
struct TinyFp4 {
  bool nvfp4 = false;
  TinyLlama tiny{.dim = 64, .hidden = 96, .heads = 4, .kv_heads = 2, .dtype = DType::bf16};
  const char* scale_type = "U8";  ///< of mxfp4

  std::int64_t group() const { return nvfp4 ? 16 : 32; }

  nlohmann::json config() const {
    nlohmann::json json = tiny.config();
    json["torch_dtype"] = "bfloat16";
    json["quantization_config"] = {
        {"quant_method", "compressed-tensors"},
        {"format", nvfp4 ? "nvfp4-pack-quantized" : "mxfp4-pack-quantized"},
        {"ignore", {"lm_head"}},
        {"config_groups",
         {{"group_0",
           {{"targets", {"Linear"}},
            {"weights",
             {{"num_bits", 4},
              {"type", "float"},
              {"strategy", nvfp4 ? "tensor_group" : "group"},
              {"group_size", group()},
              {"symmetric", true},
              {"dynamic", false}}},
            {"input_activations", nullptr},
            {"output_activations", nullptr}}}}}};
    return json;
  }

  std::vector<FileTensor> tensors() const {
    std::vector<FileTensor> list;
    std::uint64_t seed = 5;
    const auto bytes = [&](std::int64_t count, int least, int values) {
      std::string drawn;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto random = static_cast<int>(mix64(++seed) >> 33);
        drawn += static_cast<char>(least + random % values);
      }
      return drawn;
    };
    for (const FileTensor& tensor : tiny.tensors()) {
      if (!is_projection(tensor)) {
        list.push_back(tensor);
        continue;
      }
      const std::int64_t n = tensor.shape[0], k = tensor.shape[1];
      list.push_back({tensor.name + "_packed", "U8", {n, k / 2}, bytes(n * k / 2, 0, 256)});
      // 2^-6 to 2^-3; or of e4m3, divided by 1000.
      list.push_back({tensor.name + "_scale",
                      nvfp4 ? "F8_E4M3" : scale_type,
                      {n, k / group()},
                      nvfp4 ? bytes(n * k / 16, 0x50, 32) : bytes(n * k / 32, 121, 4)});
      if (!nvfp4) continue;
      std::string global(4, '\0');
      store_element(DType::f32, reinterpret_cast<std::byte*>(global.data()), 0, 1000);
      list.push_back({tensor.name + "_global_scale", "F32", {1}, global});
    }
    return list;
  }
};

class Fp4Weights : public testing::Test {
 protected:
  LlamaModel load() { return load_llama(folder_.path()); }
  void write(const nlohmann::json& config, const std::vector<FileTensor>& tensors) {
    write_file(folder_ / "config.json", config.dump());
    write_file(folder_ / "model.safetensors", safetensors_of(tensors));
  }
  void write(const TinyFp4& file) { write(file.config(), file.tensors()); }

  TemporaryFolder folder_;
};

double stored_e2m1(const std::string& codes, std::size_t index) {
  constexpr double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const auto byte = static_cast<unsigned char>(codes[index / 2]);
  const int code = index % 2 == 0 ? byte & 15 : byte >> 4;
  return code < 8 ? sizes[code] : -sizes[code - 8];
}

/// Of positive normal numbers.
double stored_e4m3(char code) {
  const auto bits = static_cast<unsigned char>(code);
  return std::ldexp(8 + (bits & 7), (bits >> 3) - 10);
}

TEST_F(Fp4Weights, AreTimesTheScalesOfTheirGroups) {
  for (const bool nvfp4 : {false, true}) {
    for (const char* type : {"U8", "F8_E8M0"}) {
      const TinyFp4 file{.nvfp4 = nvfp4, .scale_type = type};
      write(file);
      const LlamaModel model = load();
      std::map<std::string, std::string> stored;
      for (const FileTensor& tensor : file.tensors()) stored[tensor.name] = tensor.data;
      const std::string name = "model.layers.1.mlp.down_proj.weight";
      const std::string &codes = stored.at(name + "_packed"), &scales = stored.at(name + "_scale");
      const std::vector<double> got = values_of(model.weights.layers[1].down);
      ASSERT_EQ(got.size(), 2 * codes.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const char code = scales[i / static_cast<std::size_t>(file.group())];
        const double scale = nvfp4 ? static_cast<float>(stored_e4m3(code)) / 1000.0F
                                   : std::ldexp(1.0, static_cast<unsigned char>(code) - 127);
        ASSERT_EQ(got[i], scale * stored_e2m1(codes, i)) << i;
      }
    }
  }
}

// Products read mxfp4; nvfp4 becomes numbers, which a line reports.
TEST_F(Fp4Weights, DevicesHaveMxfp4AsItIsAndNvfp4AsNumbers) {
  for (const char* kind : {"llama", "mixtral"}) {
    for (const bool nvfp4 : {false, true}) {
      TinyFp4 file{.nvfp4 = nvfp4};
      file.tiny.kind = kind;
      write(file);
      const LlamaModel model = load();
      const LlamaFormats configured = llama_config_from_file(folder_ / "config.json").formats;
      EXPECT_EQ(configured.layers.size(), model.config.formats.layers.size());
      const auto decoded = decoded_matrices(model.weights, DType::bf16).counts;
      if (nvfp4) {
        EXPECT_TRUE(configured.layers.empty());
        EXPECT_EQ(decoded.size(), 1U);
        EXPECT_EQ(decoded.begin()->first, "nvfp4");
        continue;
      }
      const MatrixFormat format{kernels::WeightFormat::mxfp4, 32};
      EXPECT_EQ(configured.layer(0).wq, format);
      EXPECT_EQ(model.config.formats.layer(0).wq, format);
      EXPECT_TRUE(decoded.empty());
      if (kind == std::string("mixtral")) {
        EXPECT_EQ(configured.layer(1).expert_down, format);
        EXPECT_EQ(model.config.formats.layer(1).expert_down, format);
      }
    }
  }
}

TEST_F(Fp4Weights, OtherSchemesAreRefused) {
  const TinyFp4 mxfp4, nvfp4{.nvfp4 = true};
  const auto refused = [&](const TinyFp4& file, const nlohmann::json& changes,
                           const std::string& words) {
    nlohmann::json config = file.config();
    config["quantization_config"]["config_groups"]["group_0"].merge_patch(changes);
    write(config, file.tensors());
    expect_refused([&] { load(); }, words);
  };
  const nlohmann::json four = {{"num_bits", 4}, {"type", "float"}, {"dynamic", "local"}};
  refused(nvfp4, {{"input_activations", four}},
          "has input_activations; allowed with nvfp4-pack-quantized: null");
  refused(mxfp4, {{"input_activations", four}},
          "has input_activations; allowed with mxfp4-pack-quantized: null");
  refused(mxfp4, {{"weights", {{"group_size", 16}}}}, "group_size is 16; allowed: 32");
  refused(nvfp4, {{"weights", {{"group_size", 32}}}}, "group_size is 32; allowed: 16");
  refused(nvfp4, {{"weights", {{"type", "int"}}}}, "type is 'int'; allowed: float");
  refused(nvfp4, {{"weights", {{"num_bits", 8}}}}, "num_bits is 8; allowed: 4");
  refused(nvfp4, {{"weights", {{"symmetric", false}}}}, "symmetric is false; allowed: true");
  refused(nvfp4, {{"weights", {{"strategy", "channel"}}}},
          "strategy is 'channel'; allowed: group, tensor_group");
  refused(mxfp4, {{"weights", {{"strategy", "tensor_group"}}}},
          "strategy is 'tensor_group'; allowed: group");
  refused(nvfp4, {{"weights", {{"actorder", "group"}}}},
          "actorder is 'group'; allowed: static, weight");
  nlohmann::json config = mxfp4.config();
  config["quantization_config"]["config_groups"] = nlohmann::json::object();
  write(config, mxfp4.tensors());
  expect_refused([&] { load(); }, "config_groups: is empty");
}

TEST_F(Fp4Weights, OtherTensorsAreRefused) {
  const TinyFp4 mxfp4, nvfp4{.nvfp4 = true};
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  const auto refused = [&](const TinyFp4& file, const std::string& end, const FileTensor& other,
                           const std::string& words) {
    std::vector<FileTensor> tensors = file.tensors();
    for (FileTensor& tensor : tensors) {
      if (tensor.name == name + end) tensor = {tensor.name, other.type, other.shape, other.data};
    }
    write(file.config(), tensors);
    expect_refused([&] { load(); }, words);
  };
  refused(mxfp4, "_packed", {"", "I8", {96, 32}, std::string(96 * 32, '\0')},
          "is of type I8; allowed: U8");
  refused(mxfp4, "_scale", {"", "F8_E4M3", {96, 2}, std::string(192, '\0')},
          "is of type F8_E4M3; allowed: U8, F8_E8M0");
  refused(nvfp4, "_scale", {"", "U8", {96, 4}, std::string(384, '\0')},
          "is of type U8; allowed: F8_E4M3");
  refused(nvfp4, "_scale", {"", "F8_E4M3", {96, 2}, std::string(192, '\0')},
          "is [96, 2]; by its config it must be [96, 4]");
  refused(nvfp4, "_scale", {"", "F8_E4M3", {96, 4}, std::string(384, '\x7f')},
          "holds nan, divided by");
  refused(nvfp4, "_global_scale", {"", "F32", {1}, std::string(4, '\0')},
          "holds 0; allowed: normal numbers above 0");
  refused(nvfp4, "_global_scale", {"", "F16", {1}, std::string(2, '\0')},
          "is of type F16 with 1 elements; allowed: one of F32");
}

TEST_F(Fp4Weights, MutatedFilesAreReadOrRefused) {
  for (const bool nvfp4 : {false, true}) {
    TinyFp4 file{.nvfp4 = nvfp4};
    file.tiny = {.dim = 32, .hidden = 32, .layers = 1, .heads = 2, .kv_heads = 1, .vocab = 4};
    file.tiny.more = {{"eos_token_id", 3}};
    file.tiny.dtype = DType::bf16;
    write(file);
    for (const char* at : {"config.json", "model.safetensors"}) {
      EXPECT_GT(refused_mutations(folder_ / at, 500, false, [&] { sum_of(load()); }), 50);
    }
  }
}

}  // namespace
}  // namespace greta::test::fp4_weights_test
