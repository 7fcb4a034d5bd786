// Protects: checkpoints of AWQ, GPTQ and compressed-tensors are the weights that their published
// packing stands for, are known by their config.json, and what can't be repacked is refused in one
// line.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/pipeline/models/quantise.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/packed_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::packed_weights_test {
namespace {

using namespace greta::runtime;

std::vector<TinyPacked> all_kinds() {
  std::vector<TinyPacked> kinds;
  for (const std::int64_t group : {32, 64, 128}) {
    TinyPacked awq;
    awq.group = group;
    kinds.push_back(awq);
    TinyPacked gptq = awq;
    gptq.method = "gptq";
    gptq.extras = group == 64;
    kinds.push_back(gptq);
    gptq.second = true;
    kinds.push_back(gptq);
    gptq.sym = true;
    gptq.second = group == 32;
    kinds.push_back(gptq);
    gptq.bits = 8;
    gptq.sym = group == 128;
    kinds.push_back(gptq);
  }
  for (const std::int64_t group : {32, 64, 128, -1}) {
    for (const int bits : {4, 8}) {
      for (const bool sym : {false, true}) {
        kinds.push_back({.method = "compressed-tensors", .group = group, .bits = bits, .sym = sym});
      }
    }
  }
  return kinds;
}

TEST(PackedWeights, AreThoseThatWerePacked) {
  for (const TinyPacked& kind : all_kinds()) {
    SCOPED_TRACE(kind.config()["quantization_config"].dump());
    const TemporaryFolder folder;
    const auto values = kind.write(folder.path());
    const LlamaModel model = load_llama(folder.path());
    EXPECT_EQ(values.size(), 14U);
    const WeightFormat integers = kind.bits == 8 ? WeightFormat::int8 : WeightFormat::int4;
    const MatrixFormat format{integers, kind.group < 0 ? 128 : kind.group, !kind.sym};
    for (std::size_t i = 0; i < 2; ++i) {
      const LlamaLayer& layer = model.weights.layers[i];
      for (const auto& [view, name] : {std::pair{&layer.wq, "self_attn.q"},
                                       {&layer.wk, "self_attn.k"},
                                       {&layer.wv, "self_attn.v"},
                                       {&layer.wo, "self_attn.o"},
                                       {&layer.gate, "mlp.gate"},
                                       {&layer.up, "mlp.up"},
                                       {&layer.down, "mlp.down"}}) {
        EXPECT_EQ(view->format(), format) << name;
        const std::string key = "model.layers." + std::to_string(i) + "." + name + "_proj.weight";
        EXPECT_EQ(values_of(*view), values.at(key)) << name;
      }
    }
    EXPECT_FALSE(model.weights.head.quantised());
    EXPECT_EQ(llama_config_from_file(folder / "config.json").formats.layers,
              model.config.formats.layers);
  }
}

// A scale of more than 128 weights is that of several groups on devices.
TEST(PackedWeights, LargerGroupsAreSeveralWithTheSameScale) {
  for (const char* method : {"awq", "gptq"}) {
    for (const bool rows : {false, true}) {
      TinyPacked kind;
      kind.method = method;
      kind.group = 256;  // all of a row of these projections
      kind.only = "down_proj";
      if (rows) kind.more = {{"group_size", -1}};
      kind.desc_act = std::string_view(method) == "gptq";  // without an effect on one group
      SCOPED_TRACE(kind.config()["quantization_config"].dump());
      const TemporaryFolder folder;
      const auto values = kind.write(folder.path());
      const LlamaModel model = load_llama(folder.path());
      const WeightView& down = model.weights.layers[1].down;
      EXPECT_EQ(down.format(), (MatrixFormat{WeightFormat::int4, 128, true}));
      EXPECT_EQ(values_of(down), values.at("model.layers.1.mlp.down_proj.weight"));
    }
  }
}

/// Returns the weights of a row by their groups.
std::vector<std::size_t> by_groups(const std::vector<std::int64_t>& groups) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return groups[a] < groups[b]; });
  return order;
}

// Activation order: a view has the weights that were packed, and the order in which devices gather
// activations. Hidden units are renumbered as `down` has them, so that it needs none.
TEST(PackedWeights, GroupsThatAreNotConsecutive) {
  for (const auto& [method, bits] :
       {std::pair("gptq", 4), {"gptq", 8}, {"compressed-tensors", 4}, {"compressed-tensors", 8}}) {
    SCOPED_TRACE(std::string(method) + std::to_string(bits));
    TinyPacked kind;
    kind.method = method;
    kind.bits = bits;
    kind.desc_act = true;
    const TemporaryFolder folder;
    const auto values = kind.write(folder.path());
    const LlamaModel model = load_llama(folder.path());
    const LlamaLayer& layer = model.weights.layers[1];
    const auto of = [&](const std::string& name) {
      return values.at("model.layers.1." + name + "_proj.weight");
    };
    const auto all = of("self_attn.q");
    EXPECT_EQ(values_of(layer.wq), all);
    EXPECT_EQ(values_of(layer.wo), of("self_attn.o"));
    std::vector<double> some(300);  // from within a row to within another one
    layer.wq.read(100, some.size(), some.data());
    EXPECT_EQ(some, std::vector(all.begin() + 100, all.begin() + 400));
    const auto hidden = static_cast<std::size_t>(layer.down.cols);
    const auto dim = static_cast<std::size_t>(layer.down.rows);
    const auto units = by_groups(kind.groups_of("model.layers.1.mlp.down_proj.weight", 256));
    const auto gate = of("mlp.gate"), up = of("mlp.up"), down = of("mlp.down");
    const auto gates = values_of(layer.gate), ups = values_of(layer.up),
               downs = values_of(layer.down);
    for (std::size_t unit = 0; unit < hidden; ++unit) {
      for (std::size_t i = 0; i < dim; ++i) {
        ASSERT_EQ(gates[unit * dim + i], gate[units[unit] * dim + i]);
        ASSERT_EQ(ups[unit * dim + i], up[units[unit] * dim + i]);
        ASSERT_EQ(downs[i * hidden + unit], down[i * hidden + units[unit]]);
      }
    }
    const LlamaLayerFormats& formats = model.config.formats.layers[1];
    EXPECT_EQ(formats.wq.order, 1);
    EXPECT_EQ(formats.down.order, 0);
    EXPECT_EQ(llama_config_from_file(folder / "config.json").formats.layers,
              model.config.formats.layers);
  }
  // Matrices with the same inputs and unlike orders are apart; static groups are consecutive.
  TinyPacked apart;
  apart.method = "gptq";
  apart.desc_act = apart.apart = true;
  const TemporaryFolder folder;
  apart.write(folder.path());
  const LlamaLayerFormats formats = load_llama(folder.path()).config.formats.layers[0];
  EXPECT_EQ(std::vector({formats.wq.order, formats.wk.order, formats.wv.order, formats.up.order}),
            std::vector({1, 2, 3, 2}));
  apart.more = {{"static_groups", true}};
  const auto config = llama_config_from_json(apart.config().dump(), "config.json");
  EXPECT_EQ(config.formats.layers[0].wq.order, 0);
}

TEST(PackedWeights, ConfigsThatCannotBeRepacked) {
  const std::pair<nlohmann::json, const char*> cases[] = {
      {{{"quant_method", "bitsandbytes"}},
       "quant_method is 'bitsandbytes'; allowed: awq, gptq, fp8"},
      {{{"quant_method", "fp8"}, {"weight_block_size", {64, 128}}},
       "weight_block_size is [64,128]"},
      {{{"quant_method", "compressed-tensors"}, {"format", "marlin-24"}},
       "float-quantized, int-quantized, mxfp4-pack-quantized, naive-quantized, "
       "nvfp4-pack-quantized, pack-quantized"},
      {{{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}}, "no config_groups"},
      {{{"quant_method", "gptq"}, {"is_marlin_format", true}}, "is_marlin_format is true"},
      {{{"bits", 8}}, "bits is 8; allowed: 4"},
      {{{"quant_method", "gptq"}, {"bits", 3}}, "bits is 3; allowed: 4, 8"},
      {{{"group_size", 0}}, "group_size is 0; allowed: 32, 64, multiples of 128, -1"},
      {{{"group_size", 192}}, "group_size is 192"},
      {{{"group_size", 96}}, "group_size is 96"},
      {{{"version", "gemv"}}, "version is 'gemv'; allowed: gemm"},
      {{{"version", nullptr}, {"format", "gemv"}}, "format is 'gemv'; allowed: gemm"},
      {{{"quant_method", "gptq"}, {"format", "marlin"}}, "format is 'marlin'; allowed: gptq"},
      {{{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}},
       "quant_algo is 'NVFP4'; allowed: FP8"},
      {{{"quant_method", "gptq"}, {"checkpoint_format", "marlin"}}, "'marlin'; allowed: gptq"},
      {{{"quant_method", "gptq"}, {"dynamic", {{"a", 1}}}}, "dynamic"},
  };
  for (const auto& [more, words] : cases) {
    TinyPacked packed;
    packed.more = more;
    expect_refused([&] { llama_config_from_json(packed.config().dump(), "config.json"); }, words);
  }
}

TEST(PackedWeights, ConfigsOfCompressedTensorsThatCannotBeRepacked) {
  const auto refused = [](const char* path, const nlohmann::json& value, const char* words) {
    nlohmann::json config = TinyPacked{.method = "compressed-tensors"}.config();
    config[nlohmann::json::json_pointer(std::string("/quantization_config/") + path)] = value;
    expect_refused([&] { llama_config_from_json(config.dump(), "config.json"); }, words);
  };
  const std::string weights = "config_groups/group_0/weights/";
  refused((weights + "num_bits").c_str(), 3, "num_bits is 3; allowed: 4, 8");
  refused((weights + "type").c_str(), "float", "type is 'float'; allowed: int");
  refused((weights + "strategy").c_str(), "tensor",
          "strategy is 'tensor'; allowed: group, channel");
  refused((weights + "group_size").c_str(), 40, "group_size is 40");
  refused((weights + "group_size").c_str(), nullptr, "has no group_size");
  refused((weights + "symmetric").c_str(), 1, "symmetric is 1");
  refused("config_groups/group_0/input_activations", {{"num_bits", 8}}, "has input_activations");
  refused("config_groups/group_0/weights", nullptr, "has no weights");
  refused("config_groups/group_1", {{"weights", {{"num_bits", 8}}}}, "of different weights");
  refused("config_groups", nlohmann::json::object(), "is empty");
  refused("config_groups", {3}, "is not a JSON object");
  refused("transform_config", {{"config_groups", {{"a", 1}}}}, "has a transform_config");
  refused("sparsity_config", {{"format", "sparse-24-bitmask"}},
          "'sparse-24-bitmask'; allowed: dense");
}

// Integers of four bits and scales that need no change are used as they lie in the file.
TEST(PackedWeights, RowsOfCompressedTensorsStayInTheirFile) {
  for (const bool sym : {true, false}) {
    const TemporaryFolder folder;
    TinyPacked{.method = "compressed-tensors", .sym = sym}.write(folder.path());
    EXPECT_EQ(load_llama(folder.path()).converted.size(), sym ? 0U : 14U);
  }
}

/// Expects a file to be refused if a tensor of one matrix is changed.
void expect_refused_tensor(const TinyPacked& packed, const std::string& suffix, const auto& change,
                           const char* words) {
  const TemporaryFolder folder;
  packed.write(folder.path());
  std::vector<FileTensor> tensors = packed.tensors(nullptr);
  for (FileTensor& tensor : tensors) {
    if (tensor.name == "model.layers.1.mlp.up_proj." + suffix) change(tensor);
  }
  write_file(folder / "model.safetensors", safetensors_of(tensors));
  expect_refused([&] { load_llama(folder.path()); }, words);
}

TEST(PackedWeights, TensorsOfCompressedTensorsThatDoNotFit) {
  const auto refused = [](const std::string& suffix, const auto& change, const char* words) {
    expect_refused_tensor({.method = "compressed-tensors"}, "weight_" + suffix, change, words);
  };
  refused(
      "packed",
      [](FileTensor& t) {
        t.shape = {t.shape[1], t.shape[0]};
      },
      "it must be [256, 16]");
  refused(
      "packed", [](FileTensor& t) { t.name += "x"; }, "has no tensor");
  refused(
      "shape", [](FileTensor& t) { t.data[0] = 1; }, "weight_shape' isn't [256, 128]");
  refused(
      "shape", [](FileTensor& t) { t.data[7] = 1; }, "weight_shape' isn't [256, 128]");
  refused(
      "shape",
      [](FileTensor& t) {
        t.shape = {2, 1};
      },
      "weight_shape' isn't [256, 128]");
  refused(
      "scale",
      [](FileTensor& t) {
        t.shape = {t.shape[1], t.shape[0]};
      },
      "it must be [256, 2]");
  refused(
      "zero_point", [](FileTensor& t) { t.type = "F32"; }, "is of type F32; allowed: I32");
}

// Exporters of GPTQ wrote their settings into a file of their own, and called weights as they
// liked.
TEST(PackedWeights, SettingsMayLieBesideTheConfig) {
  TinyPacked packed{.method = "gptq", .desc_act = true};
  const TemporaryFolder folder;
  packed.write(folder.path());
  const double sum = sum_of(load_llama(folder.path()));
  nlohmann::json config = packed.config(), own = config["quantization_config"];
  config.erase("quantization_config");
  own.erase("quant_method");
  own.update({{"damp_percent", 0.1}, {"true_sequential", true}, {"model_name_or_path", nullptr}});
  write_file(folder / "config.json", config.dump());
  write_file(folder / "quantize_config.json", own.dump());
  std::filesystem::rename(folder / "model.safetensors",
                          folder / "gptq_model-4bit-128g.safetensors");
  const LlamaModel model = load_llama(folder.path());
  EXPECT_EQ(sum_of(model), sum);
  EXPECT_EQ(llama_config_from_file(folder / "config.json").formats.layers[0].down,
            (MatrixFormat{WeightFormat::int4, 64, true}));
  write_file(folder / "other.safetensors", "");
  expect_refused([&] { load_llama(folder.path()); }, "has neither model.safetensors nor");
  std::filesystem::remove(folder / "other.safetensors");
  own["bits"] = 3;
  write_file(folder / "quantize_config.json", own.dump());
  expect_refused([&] { load_llama(folder.path()); },
                 "quantize_config.json: bits is 3; allowed: 4, 8");
  own["bits"] = 4.0;  // as some exporters write it
  write_file(folder / "quantize_config.json", own.dump());
  EXPECT_EQ(sum_of(load_llama(folder.path())), sum);
  const auto load = [&] { load_llama(folder.path()); };
  EXPECT_GT(refused_mutations(folder / "quantize_config.json", 50, false, load), 10);
  write_file(folder / "quantize_config.json", "[]");
  expect_refused([&] { load_llama(folder.path()); }, "quantize_config.json: is not a JSON object");
}

// GPTQ's second form has other zero points, also where it is called a format.
TEST(PackedWeights, NewerNamesOfKeysAreRead) {
  TinyPacked packed{.method = "gptq", .second = true};
  const TemporaryFolder folder;
  packed.write(folder.path());
  const double sum = sum_of(load_llama(folder.path()));
  packed.more = {{"checkpoint_format", nullptr}, {"format", "gptq_v2"}};
  packed.write(folder.path());
  EXPECT_EQ(sum_of(load_llama(folder.path())), sum);
  packed = {.method = "compressed-tensors"};
  packed.write(folder.path());
  const double other = sum_of(load_llama(folder.path()));
  nlohmann::json config = packed.config();
  config["compression_config"] = config["quantization_config"];
  config.erase("quantization_config");
  write_file(folder / "config.json", config.dump());
  EXPECT_EQ(sum_of(load_llama(folder.path())), other);
}

// After zero points, whose number is odd here.
TEST(PackedWeights, OrdersAreAligned) {
  TinyPacked packed{.method = "compressed-tensors", .group = 128, .desc_act = true};
  packed.tiny = {.dim = 384, .hidden = 384, .layers = 1, .heads = 192, .kv_heads = 1, .vocab = 8};
  packed.tiny.more = {{"eos_token_id", 3}};
  const TemporaryFolder folder;
  auto values = packed.write(folder.path());
  const LlamaModel model = load_llama(folder.path());
  const WeightView& keys = model.weights.layers[0].wk;
  ASSERT_EQ(keys.rows, 2);
  ASSERT_NE(keys.order, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(keys.order) % alignof(std::int32_t), 0U);
  EXPECT_EQ(values_of(keys), values["model.layers.0.self_attn.k_proj.weight"]);
}

TEST(PackedWeights, TensorsThatCannotBeRepacked) {
  TinyPacked packed;
  packed.method = "gptq";
  packed.extras = true;
  const auto refused = [&](const std::string& suffix, const auto& change, const char* words) {
    expect_refused_tensor(packed, suffix, change, words);
  };
  refused(
      "qweight", [](FileTensor& t) { t.name += "x"; }, "has no tensor");
  refused(
      "qweight", [](FileTensor& t) { t.type = "F32"; }, "is of type F32; allowed: I32");
  refused(
      "qweight", [](FileTensor& t) { std::swap(t.shape[0], t.shape[1]); }, "it must be [16, 256]");
  refused(
      "qzeros",
      [](FileTensor& t) {
        t.shape = {1, t.shape[0] * t.shape[1]};
      },
      "it must be [2, 32]");
  refused(
      "scales", [](FileTensor& t) { t.type = "I16"; }, "is of type I16; allowed: F16,BF16");
  refused(
      "g_idx", [](FileTensor& t) { t.data[4 * 3] = 1; },
      "puts 63 weights into group 0; allowed: 64");
  refused(
      "g_idx", [](FileTensor& t) { t.data[4 * 3] = 2; },
      "puts weight 3 into group 2; allowed: 0 to 1");
  refused(
      "g_idx", [](FileTensor& t) { t.data[4 * 3 + 3] = '\x80'; }, "puts weight 3 into group -");
  refused(
      "bias", [](FileTensor& t) { t.data[2 * 9] = '\x80'; }, "isn't zero; allowed: no bias");
  packed.bits = 8;
  refused(
      "qzeros", [](FileTensor& t) { t.data[5] = '\xff'; },
      "has a zero point of 256; allowed: at most 255");
  const TemporaryFolder folder;
  packed.write(folder.path());
  nlohmann::json config = packed.config();
  config["intermediate_size"] = 100;
  write_file(folder / "config.json", config.dump());
  expect_refused([&] { load_llama(folder.path()); }, "allowed: whole groups of 64 weights");
}

// Untrusted files: no crash, no hang, one line.
TEST(PackedWeights, DamagedFilesAreRefusedOrRead) {
  TinyPacked packed;
  packed.tiny = {.dim = 32, .hidden = 32, .layers = 1, .heads = 4, .kv_heads = 2, .vocab = 8};
  packed.tiny.more = {{"eos_token_id", 3}};
  packed.group = 32;
  packed.extras = true;
  for (const char* method : {"gptq", "compressed-tensors"}) {
    packed.method = method;
    packed.desc_act = packed.compressed();
    const TemporaryFolder folder;
    packed.write(folder.path());
    const auto load = [&] { sum_of(load_llama(folder.path())); };
    EXPECT_GT(refused_mutations(folder / "config.json", 1000, packed.method == "gptq", load), 300);
    EXPECT_GT(refused_mutations(folder / "model.safetensors", 1000, false, load), 200);
  }
}

}  // namespace
}  // namespace greta::test::packed_weights_test
