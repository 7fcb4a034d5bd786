// Protects: GGUF files give the weights and the configuration that the same model has as
// safetensors, and hostile ones are rejected with one line.

#include "runtime/pipeline/models/formats/gguf.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::gguf_test {
namespace {

using Ids = std::vector<std::int32_t>;

class Gguf : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "model.gguf"; }
  /// Runs the GGUF file and the folder in FP64, with weights rounded to `type`, and expects the
  /// same logits but for the order of sums.
  void expect_same_model(DType type) {
    const LlamaModel gguf = load_llama(file()), twin = load_llama(folder_.path());
    EXPECT_EQ(gguf.config.rope_style, RopeStyle::interleaved);
    EXPECT_EQ(twin.config.rope_style, RopeStyle::half);
    EXPECT_EQ(gguf.config.parameters(), twin.config.parameters());
    const LlamaLayer &layer = gguf.weights.layers[0], &other = twin.weights.layers[0];
    EXPECT_EQ(rounded(gguf.weights.embedding), rounded(twin.weights.embedding));
    EXPECT_EQ(rounded(layer.wv), rounded(other.wv));
    EXPECT_EQ(rounded(layer.down), rounded(other.down));
    EXPECT_NE(rounded(layer.wk), rounded(other.wk));  // whose rows are in another order
    const Ids ids{1, 17, 299, 5, 5, 42};
    const std::vector<double> got = LlamaReference(gguf, type).run(ids);
    const std::vector<double> want = LlamaReference(twin, type).run(ids);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-9) << i;
  }
  static std::vector<float> rounded(const WeightView& view) {
    const std::vector<double> values = values_of(view);
    return {values.begin(), values.end()};
  }
  TemporaryFolder folder_;
};

TEST_F(Gguf, PlainTypesAreTheModelOfTheirSafetensors) {
  for (const DType type : converted_types()) {
    for (const bool tied : {false, true}) {
      TinyGguf both;
      both.tiny.dtype = type;
      both.tiny.tied = tied;
      both.write(folder_.path());
      expect_same_model(type);
      const LlamaModel model = load_llama(file());
      EXPECT_EQ(model.config.dtype, type);
      EXPECT_EQ(model.config.tied_embeddings, tied);
      EXPECT_EQ(model.weights.layers[1].wk.rows, 8);
      EXPECT_FALSE(model.weights.layers[1].wk.blocks);
    }
  }
}

TEST_F(Gguf, BlockFormatsAreTheModelOfTheirDecodedWeights) {
  for (const auto& [format, name, elements, bytes] : block_format_table) {
    SCOPED_TRACE(name);
    TinyGguf both;
    const auto block = static_cast<std::int64_t>(block_traits(format).elements);
    both.tiny.dim = block;
    both.tiny.hidden = 2 * block;
    both.tiny.layers = 1;
    both.blocks = format;
    both.write(folder_.path());
    expect_same_model(DType::f32);
    const LlamaModel model = load_llama(file());
    const WeightView& down = model.weights.layers[0].down;
    EXPECT_EQ(down.blocks, format);
    EXPECT_EQ(down.bytes(),
              down.elements() / block_traits(format).elements * block_traits(format).bytes);
    EXPECT_EQ(model.config.dtype, DType::f16);
    EXPECT_FALSE(model.weights.final_norm.blocks);
  }
}

TEST_F(Gguf, RopeIsScaledAsTheFileSays) {
  TinyGguf both;
  both.linear = true;
  both.tiny.more = {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}};
  both.write(folder_.path());
  expect_same_model(DType::f32);
  // Divisors that are all 2 are the same.
  both.linear = false;
  both.divisors = {2, 2};
  both.write(folder_.path());
  expect_same_model(DType::f32);
  both.divisors = {1, 4};
  both.write(folder_.path());
  const LlamaModel model = load_llama(file());
  EXPECT_EQ(rope_frequencies(model.config)[1], 0.01 / 4);
  both.divisors = {1, 2, 3};
  both.write(folder_.path());
  expect_refused([&] { load_llama(file()); }, "'rope_freqs.weight' must have 2 numbers");
  both.divisors = {1, 0};
  both.write(folder_.path());
  expect_refused([&] { load_llama(file()); }, "allowed: above 0");
}

// llama.cpp takes a factor without a type for linear, reads an older key, and takes 0 for none.
TEST_F(Gguf, RopeIsScaledByAFactorWithoutATypeAndOfTheOlderKey) {
  using Values = std::map<std::string, double>;
  const TinyGguf both;
  const auto read = [&](const Values& factors, const char* type = nullptr) {
    GgufWriter writer;
    both.add_metadata(writer);
    for (const auto& [key, factor] : factors)
      writer.add_f32("llama.rope." + key, static_cast<float>(factor));
    if (type != nullptr) writer.add_text("llama.rope.scaling.type", type);
    both.write(writer, folder_.path());
    const RopeScaling scaling = load_llama(file()).config.rope_scaling;
    return scaling.kind == RopeScaling::Kind::linear ? scaling.factor : 0;
  };
  EXPECT_EQ(read({{"scaling.factor", 4}}), 4);
  EXPECT_EQ(read({{"scale_linear", 8}}), 8);
  EXPECT_EQ(read({{"scale_linear", 8}}, "linear"), 8);
  EXPECT_EQ(read({{"scaling.factor", 4}, {"scale_linear", 8}}), 4);
  EXPECT_EQ(read({{"scaling.factor", 0}}), 0);
  EXPECT_EQ(read({{"scaling.factor", 0}}, "linear"), 0);
  EXPECT_EQ(read({}, "linear"), 0);
  EXPECT_EQ(read({{"scaling.factor", 1}}, "none"), 0);
  EXPECT_EQ(read({{"scaling.factor", 0}}, "none"), 0);
  expect_refused(
      [&] {
        read({{"scaling.factor", 2}}, "none");
      },
      "is 2, but llama.rope.scaling.type is none; allowed: 0, 1");
  expect_refused([&] { read({{"scale_linear", 2}}, "none"); }, "llama.rope.scale_linear");
  expect_refused([&] { read({{"scaling.factor", 0.5}}); }, "is 0.5; allowed: 0, 1 and more");
  expect_refused([&] { read({{"scaling.factor", -2}}); }, "is -2; allowed: 0, 1 and more");
  expect_refused([&] { read({{"scaling.attn_factor", 2}}); }, "llama.rope.scaling.attn_factor");
}

TEST_F(Gguf, YarnAndWindowsAreRead) {
  const auto read = [&](const std::map<std::string, double>& numbers) {
    GgufWriter writer;
    TinyGguf().add_metadata(writer);
    writer.add_text("llama.rope.scaling.type", "yarn");
    writer.add_u32("llama.rope.scaling.original_context_length", 8);
    writer.add_u32("llama.attention.sliding_window", 16);
    for (const auto& [key, number] : numbers) {
      writer.add_f32("llama.rope.scaling." + key, static_cast<float>(number));
    }
    TinyGguf().write(writer, folder_.path());
    return load_llama(file()).config;
  };
  const LlamaConfig config = read({{"factor", 4}, {"yarn_beta_fast", 16}});
  EXPECT_EQ(config.max_positions, 16);
  const RopeScaling& scaling = config.rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(scaling.original_positions, 8);
  EXPECT_EQ(scaling.fast_rotations, 16);
  EXPECT_DOUBLE_EQ(scaling.attention_factor, yarn_attention_factor(4));
  expect_refused(
      [&] {
        read({{"factor", 4}, {"yarn_ext_factor", 0.5}});
      },
      "yarn_ext_factor isn't 1");
}

// Others than those of kernels are in their formats on devices if weights are the same, otherwise
// numbers.
TEST_F(Gguf, OtherBlockFormatsAreRewrittenOrNumbers) {
  using enum BlockFormat;
  TinyGguf both;
  both.tiny.dim = both.tiny.hidden = 256;
  both.tiny.layers = 1;
  both.tiny.tied = true;
  both.others = {{"q_proj", q5_0},    {"k_proj", iq4_nl},  {"v_proj", q3_k}, {"o_proj", q5_k},
                 {"gate_proj", q2_k}, {"up_proj", iq4_xs}, {"down", q4_1},   {"embed", q5_k}};
  both.write(folder_.path());
  const LlamaModel model = load_llama(file());
  const LlamaLayerFormats formats = model.config.formats.layer(0);
  EXPECT_EQ(formats.wq, MatrixFormat{WeightFormat::q8_0});
  EXPECT_EQ(formats.wk, MatrixFormat{WeightFormat::q8_0});
  EXPECT_EQ(formats.wv, MatrixFormat{WeightFormat::q6_k});
  for (const MatrixFormat& format : {formats.wo, formats.gate, formats.up, formats.down}) {
    EXPECT_TRUE(format.plain());
  }
  const DecodedMatrices decoded = decoded_matrices(model.weights, DType::f16);
  EXPECT_EQ(decoded.bytes, 4 * 2 * 256 * 256U);
  EXPECT_EQ(decoded.counts, (std::map<std::string, std::int64_t>{
                                {"q5_k", 1}, {"q2_k", 1}, {"iq4_xs", 1}, {"q4_1", 1}}));
}

// A layer's experts are all numbers if some must be.
TEST_F(Gguf, ExpertsOfOtherBlockFormatsAreNumbers) {
  TinyGguf both;
  both.tiny = {.dim = 256, .hidden = 256, .layers = 1, .kind = "mixtral", .experts = 3};
  both.blocks = BlockFormat::q6_k;
  both.others = {{".w1", BlockFormat::q5_k}};
  both.write(folder_.path());
  const LlamaModel model = load_llama(file());
  EXPECT_EQ(model.config.formats.unread_experts, "");
  EXPECT_TRUE(model.config.formats.layer(0).expert_gate_up.plain());
  EXPECT_TRUE(model.config.formats.layer(0).expert_down.plain());
  EXPECT_EQ(model.config.formats.layer(0).wq, MatrixFormat{WeightFormat::q6_k});
  const DecodedMatrices decoded = decoded_matrices(model.weights, DType::bf16);
  EXPECT_EQ(decoded.counts, (std::map<std::string, std::int64_t>{{"q5_k", 3}, {"q6_k", 6}}));
}

TEST_F(Gguf, RefusesModelsThatItWouldGetWrong) {
  TinyGguf both;
  const auto with = [&](const auto& change) {
    return [&, change] {
      GgufWriter writer;
      both.add_metadata(writer);
      change(writer);
      both.write(writer, folder_.path());
      load_llama(file());
    };
  };
  with([](GgufWriter&) {})();
  using W = GgufWriter;
  expect_refused(with([](W& w) { w.add_u32("llama.expert_count", 8); }), "llama.expert_used_count");
  expect_refused(with([](W& w) { w.add_text("llama.rope.scaling.type", "longrope"); }),
                 "is 'longrope'; allowed: none, linear, yarn");
  expect_refused(with([](W& w) { w.add_f32("llama.logit_scale", 2); }), "llama.logit_scale");
  expect_refused(with([](W& w) { w.add_u32("llama.attention.value_length", 2); }),
                 "isn't llama.attention.key_length");
  expect_refused(with([](W& w) { w.add_flag("llama.attention.causal", false); }),
                 "llama.attention.causal is false; allowed: true");
  expect_refused(with([](W& w) { w.add_text("general.type", "adapter"); }), "is 'adapter'");
  expect_refused(with([](W& w) { w.add_u32("llama.block_count", 2); }), "occurs twice");
  expect_refused(with([](W& w) { w.add_tensor("blk.1.attn_q.bias", 0, {1}, "1234"); }),
                 "not a part of this architecture");
  expect_refused(with([](W& w) { w.add_tensor("blk.0.attn_q.bias", 0, {1}, "1234"); }),
                 "'blk.0.attn_q.bias' is [1]; by its config it must be [16]");
  expect_refused(with([](W& w) { w.add_tensor("output_norm.weight", 0, {1}, "1234"); }),
                 "'output_norm.weight' occurs twice");
  expect_refused(
      [&] {
        GgufWriter writer;
        writer.add_text("general.architecture", "qwen\n2");
        both.write(writer, folder_.path());
        load_llama(file());
      },
      R"(is 'qwen\x0a2'; allowed: llama)");
  both.replaced["blk.0.attn_v.weight"] = {17, std::string(128 * 74, 'x')};
  both.tiny.dim = 256;
  expect_refused(with([](W&) {}), "'blk.0.attn_v.weight' is of type IQ2_XS; allowed: F32, F16");
  both = {};
  both.tiny.hidden = 24;
  expect_refused(with([](W& w) {
                   w.add_tensor("blk.0.more.weight", 3, {1, 32}, std::string(20, 'x'));
                 }),
                 "'blk.0.more.weight' is not a part");
}

/// A file with one tensor of 2 x 3 f32 and one value.
struct OneTensor {
  GgufWriter writer;
  OneTensor() { writer.add_u32("some.value", 7); }
  std::string bytes(const std::vector<std::int64_t>& shape = {2, 3}, std::uint32_t type = 0,
                    std::optional<std::uint64_t> offset = std::nullopt) {
    writer.add_tensor("a", type, shape, std::string(24, 'x'), offset);
    return writer.bytes();
  }
};

TEST_F(Gguf, ReadsTheFormat) {
  const auto open = [&](const std::string& bytes) {
    write_file(file(), bytes);
    return GgufFile::open(file());
  };
  for (const std::uint32_t version : {2U, 3U}) {
    for (const std::uint64_t alignment : {8U, 32U, 24U, 4096U}) {
      OneTensor one;
      one.writer.version = version;
      one.writer.alignment = alignment;
      one.writer.add(std::string("some.list"), 9,
                     GgufWriter::raw(std::uint32_t{2}) + GgufWriter::raw(std::uint64_t{2}) +
                         GgufWriter::raw(std::uint16_t{5}) + GgufWriter::raw(std::uint16_t{65535}));
      const GgufFile opened = open(one.bytes());
      EXPECT_EQ(opened.metadata().integer("some.value", 0, 10), 7);
      EXPECT_EQ(opened.metadata().numbers("some.list"), (std::vector<double>{5, 65535}));
      const StoredTensor& tensor = opened.tensors().at("a");
      EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
      EXPECT_EQ(tensor.data.size(), 24U);
      EXPECT_EQ(static_cast<char>(tensor.data[23]), 'x');
    }
  }
  EXPECT_TRUE(open(GgufWriter().bytes()).tensors().empty());
}

TEST_F(Gguf, RefusesWhatBreaksTheFormat) {
  const auto open = [&](const std::string& bytes) {
    return [this, bytes] {
      write_file(file(), bytes);
      GgufFile::open(file());
    };
  };
  const auto changed = [&](const auto& change) {
    OneTensor one;
    change(one.writer);
    return open(one.bytes());
  };
  using W = GgufWriter;
  const auto raw64 = [](std::uint64_t value) { return W::raw(value); };
  expect_refused(open(""), "doesn't begin with GGUF");
  expect_refused(open("GGUF"), "it ends at byte 4");
  expect_refused(changed([](W& w) { w.version = 1; }), "its version is 1; allowed: 2, 3");
  expect_refused(changed([](W& w) { w.version = 3U << 24; }), "big-endian");
  expect_refused(changed([](W& w) { w.tensor_count = ~0ULL; }), "18446744073709551615 tensors");
  expect_refused(changed([](W& w) { w.value_count = 1ULL << 60; }), "values of metadata");
  expect_refused(changed([](W& w) { w.add("x", 13, ""); }), "type 13 of a value isn't known");
  expect_refused(changed([](W& w) { w.add_u32("some.value", 1); }), "some.value occurs twice");
  expect_refused(changed([](W& w) { w.add_u32("a\nb", 1); }), "not printable");
  expect_refused(changed([](W& w) { w.add_u32("", 1); }), "empty or not printable");
  expect_refused(changed([](W& w) { w.add_u32(std::string(70000, 'a'), 1); }), "allowed: 65535");
  expect_refused(changed([&](W& w) { w.add("x", 8, raw64(1ULL << 63)); }), "more are needed");
  const std::string list = W::raw(std::uint32_t{9});
  expect_refused(changed([&](W& w) { w.add("x", 9, list + raw64(1)); }), "is an array of arrays");
  for (const std::uint32_t type : {0U, 8U, 12U}) {
    for (const std::uint64_t count : {~0ULL, 1ULL << 61, 1ULL << 40}) {
      expect_refused(changed([&](W& w) { w.add("x", 9, W::raw(type) + raw64(count)); }),
                     "elements of an array");
    }
  }
  expect_refused(changed([](W& w) { w.add_u32("general.alignment", 12); }), "multiples of 8");
  expect_refused(changed([](W& w) { w.add_u32("general.alignment", 0); }),
                 "general.alignment is 0");
  const auto with = [&](const std::vector<std::int64_t>& shape, std::uint32_t type = 0,
                        std::optional<std::uint64_t> offset = std::nullopt) {
    return open(OneTensor().bytes(shape, type, offset));
  };
  with({6})();
  with({1, 1, 2, 3})();
  with({1, 0})();
  expect_refused(with({1, 1, 1, 1, 1}), "has 5 extents; allowed: 4");
  expect_refused(with({1LL << 62, 4}), "too large");
  expect_refused(with({1LL << 61, 2}), "too large");
  expect_refused(with({-1}), "too large");
  expect_refused(with({2, 4}), "has 32 bytes from 0 on, of 24");
  expect_refused(with({2, 3}, 2), "no whole blocks of 32");
  expect_refused(with({2, 3}, 99), "is of type 99");
  expect_refused(with({2, 3}, 0, 4), "is not aligned to 32");
  expect_refused(with({2, 3}, 0, ~0ULL - 31), "bytes from 18446744073709551584 on");
  expect_refused(
      [&] {
        GgufWriter writer;
        writer.add_tensor("a", 0, {2, 8}, std::string(64, 'x'));
        writer.add_tensor("b", 0, {1}, std::string(4, 'x'), 32);
        open(writer.bytes())();
      },
      "overlaps");
}

TEST_F(Gguf, RefusesValuesOfOtherTypes) {
  GgufWriter writer;
  writer.add_text("text", "word");
  writer.add_f32("number", 1.5F);
  writer.add("nan", 6, GgufWriter::raw(std::numeric_limits<float>::quiet_NaN()));
  writer.add("flag", 7, "\x02");
  writer.add("large", 10, GgufWriter::raw(~std::uint64_t{0}));
  writer.add_texts("list", {"a", "b"});
  write_file(file(), writer.bytes());
  const GgufFile opened = GgufFile::open(file());
  const GgufMetadata& m = opened.metadata();
  EXPECT_EQ(m.text("text"), "word");
  EXPECT_EQ(m.number("number"), 1.5);
  EXPECT_EQ(m.number("none", 2), 2);
  EXPECT_EQ(m.texts("list"), (std::vector<std::string_view>{"a", "b"}));
  expect_refused([&] { m.integer("text", 0, 1); }, "text is not such a number");
  expect_refused([&] { m.integer("number", 0, 9); }, "not such a number");
  expect_refused([&] { m.integer("large", 0, 9); }, "not such a number");
  expect_refused([&] { m.integer("none", 0, 9); }, "none is missing");
  expect_refused([&] { m.number("nan"); }, "not a finite number");
  expect_refused([&] { m.flag("flag", true); }, "not true or false");
  expect_refused([&] { m.text("number"); }, "is not a string");
  expect_refused([&] { m.text("list"); }, "is an array");
  expect_refused([&] { m.numbers("list"); }, "not an array of numbers");
  expect_refused([&] { m.texts("text"); }, "is not an array");
}

}  // namespace
}  // namespace greta::test::gguf_test
