// Protects: checkpoints of AWQ and GPTQ are the weights that their published packing stands for,
// are known by their config.json, and what can't be repacked is refused in one line.
#include <gtest/gtest.h>

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
    const MatrixFormat format{integers, kind.group, !kind.sym};
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
        std::vector<double> got(view->elements());
        view->read(0, got.size(), got.data());
        EXPECT_EQ(got, values.at("model.layers." + std::to_string(i) + "." + name + "_proj.weight"))
            << name;
      }
    }
    EXPECT_FALSE(model.weights.head.quantised());
    EXPECT_EQ(llama_config_from_file(folder / "config.json").formats.layers,
              model.config.formats.layers);
  }
}

TEST(PackedWeights, ConfigsThatCannotBeRepacked) {
  const std::pair<nlohmann::json, const char*> cases[] = {
      {{{"quant_method", "bitsandbytes"}},
       "quant_method is 'bitsandbytes'; allowed: awq, gptq, fp8"},
      {{{"quant_method", "fp8"}, {"weight_block_size", {64, 128}}},
       "weight_block_size is [64,128]"},
      {{{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}}, "float-quantized"},
      {{{"bits", 8}}, "bits is 8; allowed: 4"},
      {{{"quant_method", "gptq"}, {"bits", 3}}, "bits is 3; allowed: 4, 8"},
      {{{"group_size", -1}}, "group_size is -1; allowed: 32, 64, 128"},
      {{{"group_size", 96}}, "group_size is 96"},
      {{{"version", "gemv"}}, "version is 'gemv'; allowed: gemm"},
      {{{"quant_method", "gptq"}, {"desc_act", true}}, "desc_act is true; allowed: false"},
      {{{"quant_method", "gptq"}, {"checkpoint_format", "marlin"}}, "'marlin'; allowed: gptq"},
      {{{"quant_method", "gptq"}, {"dynamic", {{"a", 1}}}}, "dynamic"},
  };
  for (const auto& [more, words] : cases) {
    TinyPacked packed;
    packed.more = more;
    expect_refused([&] { llama_config_from_json(packed.config().dump(), "config.json"); }, words);
  }
}

TEST(PackedWeights, TensorsThatCannotBeRepacked) {
  TinyPacked packed;
  packed.method = "gptq";
  packed.extras = true;
  const std::string prefix = "model.layers.1.mlp.up_proj.";
  const auto refused = [&](const std::string& suffix, const auto& change, const char* words) {
    const TemporaryFolder folder;
    packed.write(folder.path());
    std::vector<FileTensor> tensors = packed.tensors(nullptr);
    for (FileTensor& tensor : tensors) {
      if (tensor.name == prefix + suffix) change(tensor);
    }
    write_file(folder / "model.safetensors", safetensors_of(tensors));
    expect_refused([&] { load_llama(folder.path()); }, words);
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
      "g_idx", [](FileTensor& t) { t.data[4 * 3] = 1; }, "puts weight 3 into group 1");
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
  packed.method = "gptq";
  packed.extras = true;
  const TemporaryFolder folder;
  packed.write(folder.path());
  const auto load = [&] { sum_of(load_llama(folder.path())); };
  EXPECT_GT(refused_mutations(folder / "config.json", 1500, true, load), 700);
  EXPECT_GT(refused_mutations(folder / "model.safetensors", 1500, false, load), 300);
}

}  // namespace
}  // namespace greta::test::packed_weights_test
