// Protects: the parts of a split GGUF model are the model, and parts that are missing, damaged or
// of another model are rejected with one line.

#include <gtest/gtest.h>

#include "runtime/pipeline/llama/reference.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::gguf_split_test {
namespace {

namespace fs = std::filesystem;

class GgufSplit : public testing::Test {
 protected:
  /// Returns the paths of the parts. The folder also has the model as one file.
  std::vector<fs::path> write(std::size_t count, std::size_t first) {
    GgufWriter writer;
    TinyGguf both;
    both.tiny.vocab = 262;
    both.divisors = {1, 4};
    both.add_metadata(writer);
    writer.add_byte_tokens();
    both.write(writer, folder_.path());
    std::vector<fs::path> paths;
    for (const std::string& name : writer.write_parts(folder_.path(), count, first)) {
      paths.push_back(folder_ / name);
    }
    return paths;
  }
  static void copy(const fs::path& from, const fs::path& to) { write_file(to, read_file(from)); }

  TemporaryFolder folder_;
};

TEST_F(GgufSplit, AnyPartOpensTheModel) {
  for (const auto& [count, first] : {std::pair<std::size_t, std::size_t>(2, 5), {3, 0}, {12, 1}}) {
    const std::vector<fs::path> parts = write(count, first);
    const LlamaModel one = load_llama(folder_ / "model.gguf");
    const std::vector<std::int32_t> ids{1, 17, 259, 5};
    const std::vector<double> want = LlamaReference(one, DType::f32).run(ids);
    const std::vector<std::int32_t> text =
        load_tokenizer(folder_ / "model.gguf", one.config)->encode("h h", true);
    for (const fs::path& part : {parts.front(), parts[1], parts.back()}) {
      const LlamaModel model = load_llama(part);
      EXPECT_EQ(model.files.size(), count);
      EXPECT_EQ(LlamaReference(model, DType::f32).run(ids), want) << part;
      const fs::path tokenizer = find_tokenizer(part, model.config);
      EXPECT_EQ(load_tokenizer(tokenizer, model.config)->encode("h h", true), text);
      EXPECT_EQ(llama_config_from_file(part).rope_divisors, (std::vector<double>{1, 4}));
    }
  }
}

TEST_F(GgufSplit, MissingAndOtherPartsAreRefused) {
  const std::vector<fs::path> parts = write(3, 4);
  const auto load = [&] { load_llama(parts[0]); };
  const std::string second = read_file(parts[1]);
  load();
  fs::remove(parts[1]);
  expect_refused(load, "model-00002-of-00003.gguf: is missing, part 2 of a model of 3 files");
  expect_refused([&] { load_llama(parts[2]); }, "model-00002-of-00003.gguf: is missing");
  copy(parts[2], parts[1]);
  expect_refused(load, "split.no is 2 of 3; by its name it must be 1 of 3");
  copy(folder_ / "model.gguf", parts[1]);
  expect_refused(load, "split.no is 0 of 1; by its name it must be 1 of 3");
  write_file(parts[1], "GGUF");
  expect_refused(load, "model-00002-of-00003.gguf: is not a GGUF file that can be read");
  write_file(parts[1], second);
  load();
  copy(parts[0], folder_ / "other.gguf");
  expect_refused([&] { load_llama(folder_ / "other.gguf"); },
                 "split.no is 0 of 3, but the file's name doesn't end with -00001-of-00003.gguf");
  const auto part = [&](std::uint32_t number, std::uint32_t total, const std::string& tensor) {
    GgufWriter file;
    file.add_u32("split.no", number);
    file.add_u32("split.count", 3);
    file.add_u32("split.tensors.count", total);
    file.add_tensor(tensor, 0, {1}, "1234");
    return file.bytes();
  };
  write_file(parts[1], part(1, 7, "token_embd.weight"));
  expect_refused(load, "'token_embd.weight' is in another part, too");
  write_file(parts[1], part(1, 7, "more"));
  expect_refused(load, "split.tensors.count is 22, but all parts have");
  write_file(parts[0], part(1025, 7, "more"));
  expect_refused(load, "split.no");
}

TEST_F(GgufSplit, MutatedPartsAreReadOrRefused) {
  const std::vector<fs::path> parts = write(3, 4);
  for (const fs::path& part : parts) {
    const int refused = refused_mutations(part, 300, false, [&] {
      const LlamaModel model = load_llama(parts[1]);
      sum_of(model);
      load_tokenizer(parts[2], model.config)->encode("h <s>", true);
    });
    EXPECT_GT(refused, 10);
  }
}

}  // namespace
}  // namespace greta::test::gguf_split_test
