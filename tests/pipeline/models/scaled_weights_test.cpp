// Protects: checkpoints of fp8 and of integers of eight bits are read as their weights and scales
// say, and others are rejected with one line.

#include <gtest/gtest.h>

#include "runtime/pipeline/models/llama_weights.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/fp8_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::scaled_weights_test {
namespace {

class ScaledWeights : public testing::Test {
 protected:
  LlamaModel load() { return load_llama(folder_.path()); }
  /// Writes the files with changes of the only one of config_groups.
  void write(const TinyFp8& file, const nlohmann::json& changes,
             const std::vector<FileTensor>& more = {}) {
    nlohmann::json config = file.config();
    config["quantization_config"]["config_groups"]["group_0"].merge_patch(changes);
    write_file(folder_ / "config.json", config.dump());
    std::vector<FileTensor> tensors = file.tensors();
    tensors.insert(tensors.end(), more.begin(), more.end());
    write_file(folder_ / "model.safetensors", safetensors_of(tensors));
  }

  TemporaryFolder folder_;
};

TEST_F(ScaledWeights, IntegersAreTimesTheScalesOfTheirRows) {
  for (const TinyFp8::Scales scales : {TinyFp8::Scales::rows, TinyFp8::Scales::tensor}) {
    const TinyFp8 file{.scales = scales, .integers = true};
    file.write(folder_.path());
    const LlamaModel model = load();
    const WeightView& view = model.weights.layers[1].down;
    EXPECT_EQ(view.format(),
              (MatrixFormat{.scaled = kernels::ScaledFormat{kernels::ByteFormat::int8}}));
    EXPECT_EQ(llama_config_from_file(folder_ / "config.json").formats.layer(1).down, view.format());
    const std::vector<double> got = values_of(view);
    const std::string name = "model.layers.1.mlp.down_proj.weight";
    std::map<std::string, FileTensor> stored;
    for (const FileTensor& tensor : file.tensors()) stored[tensor.name] = tensor;
    const FileTensor& codes = stored.at(name);
    const FileTensor& factors = stored.at(name + "_scale");
    const bool rows = scales == TinyFp8::Scales::rows;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double scale = load_element(rows ? DType::bf16 : DType::f32,
                                        reinterpret_cast<const std::byte*>(factors.data.data()),
                                        rows ? i / static_cast<std::size_t>(view.cols) : 0);
      ASSERT_EQ(got[i], scale * static_cast<signed char>(codes.data[i])) << i;
    }
  }
}

// Activations of such models are numbers, so their weights become numbers on devices.
TEST_F(ScaledWeights, WeightsWithoutActivationsAreNumbersOnDevices) {
  for (const bool integers : {false, true}) {
    TinyFp8 file{.scales = TinyFp8::Scales::rows, .integers = integers};
    file.write(folder_.path());
    const double sum = sum_of(load());
    file.weights_only = true;
    file.write(folder_.path());
    const LlamaModel model = load();
    EXPECT_EQ(sum_of(model), sum);
    EXPECT_TRUE(model.weights.layers[0].wq.format().plain());
    EXPECT_EQ(decoded_matrices(model.weights, DType::bf16).counts,
              (std::map<std::string, std::int64_t>{{integers ? "int8" : "fp8", 14}}));
    EXPECT_TRUE(llama_config_from_file(folder_ / "config.json").formats.layers.empty());
    file.tiny.kind = "mixtral";
    file.write(folder_.path());
    EXPECT_TRUE(load().config.formats.layers.empty()) << "experts are numbers, too";
  }
}

TEST_F(ScaledWeights, OtherSchemesAreRefused) {
  const TinyFp8 integers{.scales = TinyFp8::Scales::rows, .integers = true},
      numbers{.scales = TinyFp8::Scales::rows};
  const auto refused = [&](const TinyFp8& file, const nlohmann::json& changes,
                           const std::string& words) {
    write(file, changes);
    expect_refused([&] { load(); }, words);
  };
  write(integers, {{"weights", {{"num_bits", 4.0}}}});  // of eight in the file
  load();
  refused(integers, {{"weights", {{"num_bits", 5}}}}, "num_bits is 5; allowed: 4, 8");
  refused(integers, {{"weights", {{"strategy", "group"}}}},
          "strategy is 'group'; allowed: tensor, channel");
  refused(integers, {{"weights", {{"symmetric", false}}}}, "symmetric is false; allowed: true");
  refused(integers, {{"weights", {{"type", "float"}}}}, "type is 'float'; allowed: int");
  refused(integers, {{"input_activations", {{"symmetric", false}}}},
          "config_groups: input_activations: symmetric is false");
  refused(integers, {{"input_activations", {{"num_bits", 4}}}}, "num_bits is 4; allowed: 8");
  refused(integers, {{"input_activations", {{"type", "float"}}}}, "type is 'float'; allowed: int");
  refused(numbers, {{"weights", {{"type", "int"}}}}, "type is 'int'; allowed: float");
  refused(numbers, {{"weights", {{"num_bits", 4}}}}, "num_bits is 4; allowed: 8");
  refused(numbers, {{"weights", {{"strategy", "block"}, {"block_structure", {64, 128}}}}},
          "block_structure is [64,128]; allowed: [128, 128]");
  const std::string zeros = "model.layers.0.mlp.up_proj.weight_zero_point";
  std::string points(272, '\0');
  write(integers, nlohmann::json::object(), {{zeros, "I8", {272, 1}, points}});
  load();
  points[271] = 1;
  write(integers, nlohmann::json::object(), {{zeros, "I8", {272, 1}, points}});
  expect_refused([&] { load(); }, "isn't zero; allowed: symmetric weights and activations");
  nlohmann::json config = numbers.config();  // whose weights are integers
  write(integers, nlohmann::json::object());
  write_file(folder_ / "config.json", config.dump());
  expect_refused([&] { load(); }, "is of type I8; allowed: F32, F16, BF16");
}

/// Changes the stored values of the only element of tensors.
void set_scalars(std::vector<FileTensor>& tensors, const std::string& end, float value) {
  for (FileTensor& tensor : tensors) {
    if (!tensor.name.ends_with(end)) continue;
    store_element(DType::f32, reinterpret_cast<std::byte*>(tensor.data.data()), 0, value);
  }
}

// vLLM quantises what several matrices multiply once, by the greatest of their scales.
TEST_F(ScaledWeights, StaticActivationsHaveTheGreatestScaleOfTheirMatrices) {
  for (const bool integers : {false, true}) {
    TinyFp8 file{.scales = TinyFp8::Scales::tensor, .input_scales = true, .integers = integers};
    file.tiny.kind = "mixtral";
    std::vector<FileTensor> tensors = file.tensors();
    const char* const names[] = {"q_proj", "k_proj", "v_proj", "o_proj", "w1", "w3", "w2"};
    float scale = 1;
    for (const char* name : names)
      set_scalars(tensors, name + std::string(".input_scale"), ++scale);
    set_scalars(tensors, "layers.1.self_attn.q_proj.input_scale", 20);
    set_scalars(tensors, "layers.1.block_sparse_moe.experts.1.w1.input_scale", 30);
    set_scalars(tensors, "layers.0.block_sparse_moe.experts.1.w2.input_scale", 0.5F);
    write_file(folder_ / "config.json", file.config().dump());
    write_file(folder_ / "model.safetensors", safetensors_of(tensors));
    const LlamaModel model = load();
    const auto scale_of = [](const WeightView& view) {
      EXPECT_TRUE(view.scaled->format.given_input);
      return view.scaled->input_scale;
    };
    const std::vector<LlamaLayer>& layers = model.weights.layers;
    for (const WeightView* view : {&layers[0].wq, &layers[0].wk, &layers[0].wv}) {
      EXPECT_EQ(scale_of(*view), 4);
    }
    EXPECT_EQ(scale_of(layers[1].wk), 20);
    EXPECT_EQ(scale_of(layers[1].wo), 5);
    for (const LlamaExpert& expert : layers[0].experts) {
      EXPECT_EQ(scale_of(expert.gate), 7);
      EXPECT_EQ(scale_of(expert.up), 7);
      EXPECT_EQ(scale_of(expert.down), 8);
    }
    EXPECT_EQ(scale_of(layers[1].experts.front().up), 30);
    EXPECT_TRUE(model.config.formats.given_inputs());
  }
}

TEST_F(ScaledWeights, StaticActivationsNeedAScale) {
  const TinyFp8 file{.scales = TinyFp8::Scales::tensor, .input_scales = true},
      integers{.scales = TinyFp8::Scales::rows, .input_scales = true, .integers = true};
  const std::string name = "model.layers.1.mlp.up_proj.input_scale";
  nlohmann::json config = file.config();
  const auto refused = [&](std::vector<FileTensor> tensors, const std::string& words) {
    write_file(folder_ / "config.json", config.dump());
    write_file(folder_ / "model.safetensors", safetensors_of(tensors));
    expect_refused([&] { load(); }, words);
  };
  std::vector<FileTensor> tensors = file.tensors();
  std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
  refused(tensors, "there is no tensor '" + name + "' of static activations");
  std::vector<FileTensor> renamed = tensors;  // as transformers' FineGrainedFP8 calls it
  renamed.push_back(
      {"model.layers.1.mlp.up_proj.activation_scale", "BF16", {}, std::string("\0\x40", 2)});
  write_file(folder_ / "model.safetensors", safetensors_of(renamed));
  EXPECT_EQ(load().weights.layers[1].up.scaled->input_scale, 2);
  tensors.push_back({name, "F32", {2}, std::string(8, '\0')});
  refused(tensors, "is F32 [2]; allowed: one of F32, F16, BF16");
  tensors.back() = {name, "I8", {1}, "1"};
  refused(tensors, "is I8 [1]; allowed: one of F32, F16, BF16");
  for (const float value : {0.0F, -1.0F, 1e-39F, HUGE_VALF, NAN}) {
    tensors = file.tensors();
    set_scalars(tensors, name, value);
    refused(tensors, "allowed: finite scales of at least 1.2e-38");
  }
  config["quantization_config"]["weight_block_size"] = {128, 128};
  refused(file.tensors(), "activation_scheme is 'static'; allowed with weight_block_size: dynamic");
  config["quantization_config"]["activation_scheme"] = "often";
  refused(file.tensors(), "activation_scheme is 'often'; allowed: dynamic, static");
  config = integers.config();
  tensors = integers.tensors();
  tensors.push_back({"model.layers.1.mlp.up_proj.input_zero_point", "I8", {1}, "\x05"});
  refused(tensors, "isn't zero; allowed: symmetric");
  auto& scheme = config["quantization_config"]["config_groups"]["group_0"]["input_activations"];
  scheme["strategy"] = "token";
  refused(integers.tensors(), "strategy is 'token'; allowed: tensor");
  scheme["dynamic"] = "local";
  refused(integers.tensors(), "dynamic");
  scheme["dynamic"] = true;  // then the scales have no use
  write_file(folder_ / "config.json", config.dump());
  EXPECT_FALSE(load().config.formats.given_inputs());
}

// Llama-3.1-405B-FP8 has a limit of the scales that activations find.
TEST_F(ScaledWeights, ThoseOfFbgemmAreRead) {
  TinyFp8 file{.scales = TinyFp8::Scales::rows};
  nlohmann::json config = file.config();
  config["quantization_config"] = {{"quant_method", "fbgemm_fp8"}, {"activation_scale_ub", 1200}};
  std::vector<FileTensor> tensors = file.tensors();
  tensors.push_back({"model.layers.0.mlp.up_proj.input_scale_ub", "F32", {1}, "1234"});
  write_file(folder_ / "config.json", config.dump());
  write_file(folder_ / "model.safetensors", safetensors_of(tensors));
  const double sum = sum_of(load());
  file.write(folder_.path());
  EXPECT_EQ(sum_of(load()), sum);
}

// NVIDIA's ModelOpt has its settings in the config, or in a file beside it.
TEST_F(ScaledWeights, ThoseOfModelOptAreRead) {
  const TinyFp8 file{.scales = TinyFp8::Scales::tensor, .input_scales = true};
  file.write(folder_.path());
  const double sum = sum_of(load());
  nlohmann::json config = file.config(), settings = {{"quant_algo", "FP8"}};
  config.erase("quantization_config");
  write_file(folder_ / "config.json", config.dump());
  write_file(folder_ / "hf_quant_config.json", nlohmann::json{{"quantization", settings}}.dump());
  EXPECT_EQ(sum_of(load()), sum);
  EXPECT_TRUE(load().config.formats.given_inputs());
  EXPECT_GT(refused_mutations(folder_ / "hf_quant_config.json", 200, true, [&] { load(); }), 100);
  write_file(folder_ / "hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4"}})");
  expect_refused([&] { load(); },
                 "hf_quant_config.json: quantization_config: quant_algo is 'NVFP4'; allowed: FP8");
  write_file(folder_ / "hf_quant_config.json", "{}");
  expect_refused([&] { load(); }, "hf_quant_config.json: has no quantization");
  settings["quant_method"] = "modelopt";
  config["quantization_config"] = settings;
  write_file(folder_ / "config.json", config.dump());
  EXPECT_EQ(sum_of(load()), sum);
}

// The first versions of compressed-tensors called their format so. Scales of caches, which such
// files have, are not used.
TEST_F(ScaledWeights, NaiveQuantisedFp8IsRead) {
  TinyFp8 fp8{.scales = TinyFp8::Scales::tensor, .input_scales = true};
  fp8.write(folder_.path());
  const double sum = sum_of(load_llama(folder_.path()));
  nlohmann::json config = fp8.config();
  config["quantization_config"] = {{"quant_method", "compressed-tensors"},
                                   {"format", "naive-quantized"},
                                   {"quantization_status", "frozen"}};
  write_file(folder_ / "config.json", config.dump());
  auto tensors = fp8.tensors();
  for (const char* cache : {"k_scale", "v_scale"}) {
    tensors.push_back({std::string("model.layers.0.self_attn.") + cache, "F32", {1}, "1234"});
  }
  write_file(folder_ / "model.safetensors", safetensors_of(tensors));
  const LlamaModel model = load_llama(folder_.path());
  EXPECT_EQ(model.weights.layers[1].down.format(),
            (MatrixFormat{.scaled = ScaledFormat{.given_input = true}}));
  EXPECT_EQ(sum_of(model), sum);
  config["quantization_config"]["format"] = "marlin-24";
  write_file(folder_ / "config.json", config.dump());
  expect_refused([&] { load_llama(folder_.path()); }, "format is 'marlin-24'");
}

TEST_F(ScaledWeights, MutatedIntegersAreReadOrRefused) {
  TinyFp8 file{.scales = TinyFp8::Scales::rows, .integers = true};
  file.tiny = {.dim = 32, .hidden = 32, .layers = 1, .heads = 2, .kv_heads = 1, .vocab = 4};
  file.tiny.more = {{"eos_token_id", 3}};
  file.tiny.dtype = DType::bf16;
  file.write(folder_.path());
  for (const char* name : {"config.json", "model.safetensors"}) {
    EXPECT_GT(refused_mutations(folder_ / name, 1000, false, [&] { sum_of(load()); }), 100);
  }
}

}  // namespace
}  // namespace greta::test::scaled_weights_test
