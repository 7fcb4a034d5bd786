#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/layers.hpp"
#include "tests/pipeline/fp8_files.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/packed_files.hpp"

/// Small models with experts for tests.
namespace greta::test::experts_test {

inline const std::vector<std::int32_t> prompt{1, 17, 250, 3, 99, 7, 7, 128, 40, 201, 12, 5};
constexpr const char* kinds[] = {"mixtral", "qwen2_moe", "qwen3_moe"};

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Returns a model whose first layer has no experts, if it is one of Qwen.
inline TinyLlama tiny(const std::string& kind) {
  TinyLlama model{.dim = 32, .hidden = 64, .layers = 3, .heads = 4, .kv_heads = 2, .vocab = 300};
  model.kind = kind;
  if (kind != "mixtral") model.dense_layers = {0};
  return model;
}

/// Files of quantised experts, each of one layer, by name.
struct QuantisedExperts {
  const char* name;
  std::function<void(const std::filesystem::path&)> write;
  const char* file = "";
  MatrixFormat gate_up{}, down{};
};

inline std::vector<QuantisedExperts> quantised_files() {
  using enum BlockFormat;
  const auto sized = [](const char* kind, std::int64_t dim, std::int64_t hidden) {
    TinyLlama model = tiny(kind);
    model.dim = dim;
    model.hidden = model.expert_hidden = hidden;
    model.layers = 1;
    model.experts = 3;
    model.dense_layers = {};
    model.dtype = DType::f16;
    return model;
  };
  const auto gguf = [&](TinyLlama model, std::vector<std::pair<std::string, BlockFormat>> formats,
                        bool split = false) {
    TinyGguf file;
    file.tiny = std::move(model);
    file.others = std::move(formats);
    file.split = split;
    return [file](const std::filesystem::path& folder) { file.write(folder); };
  };
  const auto packed = [&](const char* method, int bits, const char* sym_only) {
    TinyPacked file;
    file.tiny = sized(bits == 8 ? "qwen3_moe" : "mixtral", 128, 64);
    file.method = method;
    file.bits = bits;
    file.only = ".experts.";
    file.sym_only = sym_only;
    return [file](const std::filesystem::path& folder) { file.write(folder); };
  };
  const auto fp8 = [&](const char* kind, TinyFp8::Scales scales, std::int64_t hidden,
                       bool integers = false, bool input_scales = false) {
    TinyFp8 file;
    file.input_scales = input_scales;
    file.scales = scales;
    file.integers = integers;
    file.tiny = sized(kind, 128, hidden);
    return [file](const std::filesystem::path& folder) { file.write(folder); };
  };
  const MatrixFormat rows8{.scaled = kernels::ScaledFormat{}},
      blocks8{.scaled = kernels::ScaledFormat{.blocks = true}},
      integers8{.scaled = kernels::ScaledFormat{kernels::ByteFormat::int8}},
      static8{.scaled = kernels::ScaledFormat{.given_input = true}};
  const auto in = [](WeightFormat format, std::int64_t group = 0, bool zeros = false) {
    return MatrixFormat{format, group, zeros};
  };
  const MatrixFormat q8 = in(WeightFormat::q8_0), q4 = in(WeightFormat::q4_0);
  const MatrixFormat int4 = in(WeightFormat::int4, 64), zeros4 = in(WeightFormat::int4, 64, true),
                     zeros8 = in(WeightFormat::int8, 64, true);
  const char* const file = "model.gguf";
  return {
      {"q8_0", gguf(sized("mixtral", 64, 96), {{"experts", q8_0}}), file, q8, q8},
      {"q4_0, a tensor for each", gguf(sized("mixtral", 64, 96), {{"experts", q4_0}}, true), file,
       q4, q4},
      {"q4_k and q6_k",
       gguf(sized("qwen3_moe", 256, 256), {{"experts", q4_k},
                                           {"experts.0.down", q6_k},
                                           {"experts.1.down", q6_k},
                                           {"experts.2.down", q6_k}}),
       file, in(WeightFormat::q4_k), in(WeightFormat::q6_k)},
      {"q3_k and iq4_nl, as q6_k and q8_0",
       gguf(sized("mixtral", 256, 256), {{"experts", q3_k}, {"w2", iq4_nl}}), file,
       in(WeightFormat::q6_k), q8},
      {"q5_k, so that q6_k is numbers, too",
       gguf(sized("qwen3_moe", 256, 256), {{"experts", q5_k},
                                           {"experts.0.down", q6_k},
                                           {"experts.1.down", q6_k},
                                           {"experts.2.down", q6_k}}),
       file},
      {"mxfp4", gguf(sized("qwen3_moe", 64, 96), {{"experts", mxfp4}}), file,
       in(WeightFormat::mxfp4, 32), in(WeightFormat::mxfp4, 32)},
      {"digits of three values, as q4_k", gguf(sized("mixtral", 256, 256), {{"experts", tq1_0}}),
       file, in(WeightFormat::q4_k), in(WeightFormat::q4_k)},
      {"pack-quantized", packed("compressed-tensors", 4, "experts"), "", int4, int4},
      {"pack-quantized of 8 bits", packed("compressed-tensors", 8, ""), "", zeros8, zeros8},
      {"awq", packed("awq", 4, ""), "", zeros4, zeros4},
      {"gptq, symmetric", packed("gptq", 4, "experts"), "", int4, int4},
      {"gptq of 8 bits, some symmetric", packed("gptq", 8, "experts.1"), "", zeros8, zeros8},
      {"fp8, of which matrices are no whole blocks", fp8("mixtral", TinyFp8::Scales::blocks, 192)},
      {"fp8 with scales of blocks", fp8("mixtral", TinyFp8::Scales::blocks, 256), "", blocks8,
       blocks8},
      {"fp8 with scales of rows", fp8("qwen3_moe", TinyFp8::Scales::rows, 48), "", rows8, rows8},
      {"fp8 with static activations", fp8("mixtral", TinyFp8::Scales::tensor, 48, false, true), "",
       static8, static8},
      {"int-quantized", fp8("qwen3_moe", TinyFp8::Scales::rows, 48, true), "", integers8,
       integers8}};
}

}  // namespace greta::test::experts_test
