// Protects: damaged models are read or refused with one line, and need no more memory than others.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/fp8_files.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/pipeline/packed_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::hostile_models_test {
namespace {

std::int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// In kilobytes. AddressSanitizer keeps 256 MiB of memory that was freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t most_growth = 512 << 10;
#else
constexpr std::int64_t most_growth = 64 << 10;
#endif

/// Loads mutations of a model with its tokenizer, and encodes a text.
class HostileModels : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "model.gguf"; }
  void write_gguf(BlockFormat format) {
    TinyGguf both;
    const bool large = block_traits(format).elements == 256;
    both.tiny.dim = both.tiny.hidden = large ? 256 : 32;
    both.tiny.layers = 1;
    both.tiny.heads = 2;
    both.tiny.kv_heads = 1;
    both.tiny.vocab = 262;
    both.blocks = format;
    both.divisors = std::vector<float>(8, 1);
    GgufWriter writer;
    both.add_metadata(writer);
    writer.add_byte_tokens();
    both.write(writer, folder_.path());
  }
  int refused_ggufs(int times, bool beginnings) {
    return refused_mutations(file(), times, beginnings, [&] {
      const LlamaModel model = load_llama(file());
      sum_of(model);
      load_tokenizer(file(), model.config)->encode("hello <s> h", true);
    });
  }
  /// Of the checkpoint that the folder has.
  int refused_safetensors(int times) {
    return refused_mutations(folder_ / "model.safetensors", times, false,
                             [&] { sum_of(load_llama(folder_.path())); });
  }

  static TinyLlama tiny(std::int64_t size) {
    TinyLlama tiny{.dim = size, .hidden = size, .layers = 1, .heads = 2, .kv_heads = 1, .vocab = 4};
    tiny.more = {{"eos_token_id", 3}};
    return tiny;
  }

  TemporaryFolder folder_;
};

// A checkpoint of experts may have tens of thousands of tensors in a file. In quadratic time, this
// test reaches its limit of time.
TEST(ModelJson, ManyObjectsAreRead) {
  constexpr std::size_t count = 300'000;
  std::string text = "{\"metadata\": {}";
  for (std::size_t i = 0; i < count; ++i) text += fmt::format(", \"tensor {}\": {{\"n\": []}}", i);
  text += '}';
  EXPECT_EQ(parse_json(text, "header").size(), count + 1);
}

TEST_F(HostileModels, MutatedGgufsAreReadOrRefused) {
  write_gguf(BlockFormat::q8_0);
  EXPECT_GT(refused_ggufs(2000, false), 100);
  // Each beginning of the header.
  write_file(file(), read_file(file()).substr(0, 1200));
  EXPECT_EQ(refused_ggufs(0, true), 1200);
}

// 100,000 of each kind of files; as `ctest -L long`.
TEST_F(HostileModels, LongMutationsOfGgufs) {
  const std::int64_t before = peak_kilobytes();
  for (const auto& [format, name, elements, bytes] : block_format_table) {
    write_gguf(format);
    const int refused = refused_ggufs(100000 / static_cast<int>(block_format_table.size()), false);
    EXPECT_GT(refused, 300) << name;
    RecordProperty(fmt::format("refused_{}", name), refused);
  }
  EXPECT_LT(peak_kilobytes() - before, most_growth);
}

TEST_F(HostileModels, LongMutationsOfSafetensors) {
  const std::int64_t before = peak_kilobytes();
  const auto expect = [&](const char* kind, int times) {
    const int refused = refused_safetensors(times);
    EXPECT_GT(refused, times / 100) << kind;
    RecordProperty(fmt::format("refused_{}", kind), refused);
  };
  tiny(4).write(folder_.path());
  expect("f32", 40000);
  for (TinyFp8 fp8 : TinyFp8::kinds()) {
    fp8.tiny = tiny(32);
    fp8.tiny.dtype = DType::bf16;
    fp8.write(folder_.path());
    expect(fp8.name(), 10000);
  }
  for (const char* const method : {"awq", "gptq", "compressed-tensors"}) {
    TinyPacked packed{.tiny = tiny(32), .method = method, .group = 32};
    packed.tiny.dtype = DType::f16;
    packed.write(folder_.path());
    expect(method, 10000);
  }
  EXPECT_LT(peak_kilobytes() - before, most_growth);
}

TEST_F(HostileModels, LongMutationsOfSentencePieces) {
  const std::int64_t before = peak_kilobytes();
  LlamaConfig config;
  config.vocab = 512;
  for (const char* const name : {"bpe", "unigram"}) {
    const auto file = folder_ / "tokenizer.model";
    write_file(file, read_file(std::string(GRETA_TEST_DATA) + "/sentencepiece/" + name + ".model"));
    const int refused = refused_mutations(file, 50000, true, [&] {
      const auto tokenizer = load_tokenizer(file, config);
      TextStream stream(*tokenizer);
      for (const std::int32_t id :
           tokenizer->encode("Once upon\ta \u00bd <sep>a b \U0001f600", true)) {
        stream.push(id);
      }
    });
    EXPECT_GT(refused, 1000) << name;
    RecordProperty(fmt::format("refused_{}", name), refused);
  }
  EXPECT_LT(peak_kilobytes() - before, most_growth);
}

}  // namespace
}  // namespace greta::test::hostile_models_test
