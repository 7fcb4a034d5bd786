// Protects: the tokenizer of llama2.c gives the same tokens as llama2.c, and malformed files are
// rejected.

#include "runtime/pipeline/models/tokenizer.hpp"

#include <gtest/gtest.h>

#include <map>

#include "runtime/pipeline/models/llama_weights.hpp"
#include "runtime/pipeline/models/text/merges.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/decoded_text.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::tokenizer_test {
namespace {

using test::expect_refused;
using test::refused_mutations;
using test::TemporaryFolder;
using test::write_file;

const std::string stories = std::string(GRETA_TEST_DATA) + "/stories260K/";
using Ids = std::vector<std::int32_t>;

TEST(ScoreTokenizer, EncodesAsLlama2C) {
  const auto tokenizer = load_tokenizer(stories + "tok512.bin", config_of(512));
  EXPECT_EQ(tokenizer->encode("Once upon a time", true), (Ids{1, 403, 407, 261, 378}));
  EXPECT_EQ(tokenizer->encode("", true), Ids{1});
  EXPECT_EQ(tokenizer->encode("", false), Ids{});
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->bos(), 1);
}

TEST(ScoreTokenizer, DecodesTheExpectedText) {
  const auto tokenizer = load_tokenizer(stories + "tok512.bin", config_of(512));
  const Ids ids{403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426};
  Ids all{1};
  all.insert(all.end(), ids.begin(), ids.end());
  EXPECT_EQ(decoded(*tokenizer, all), "Once upon a time, there was a little girl named Lily.");
  EXPECT_EQ(decoded(*tokenizer, ids), "Once upon a time, there was a little girl named Lily.");
  EXPECT_EQ(tokenizer->decode(512, false), "\ufffd");
  EXPECT_EQ(tokenizer->decode(-1, false), "\ufffd");
}

TEST(ScoreTokenizer, CharactersBeyondTheVocabularyAreBytes) {
  const auto tokenizer = load_tokenizer(stories + "tok512.bin", config_of(512));
  const std::string text = "na\u00efve \U0001f600 \u4f60\u597d\tx\n";
  const Ids ids = tokenizer->encode(text, true);
  EXPECT_EQ(decoded(*tokenizer, ids), text);
  // Byte tokens begin at 3.
  const Ids emoji{0xf0 + 3, 0x9f + 3, 0x98 + 3, 0x80 + 3};
  EXPECT_NE(std::search(ids.begin(), ids.end(), emoji.begin(), emoji.end()), ids.end());
  expect_refused([&] { tokenizer->encode("a\xff", true); }, "isn't UTF-8 from byte 1 on");
  // Special tokens that are spelled out are text.
  EXPECT_EQ(decoded(*tokenizer, tokenizer->encode("<s> <0x41>", true)), "<s> <0x41>");
}

TEST(ScoreTokenizer, RefusesFilesThatContradictThemselves) {
  const TemporaryFolder folder;
  const auto file = folder / "tok.bin";
  const auto with = [&](const std::string& bytes, std::int64_t vocab) {
    return [&file, bytes, vocab] {
      write_file(file, bytes);
      load_tokenizer(file, config_of(vocab));
    };
  };
  const std::string one("\x02\0\0\0\0\0\x80\x3f\x01\0\0\0a", 13);
  with(one, 1)();
  expect_refused(with(one, 2), "it has 1 tokens, the model 2");
  expect_refused(with(one + one.substr(4), 1), "more than the model's 1 tokens");
  expect_refused(with(one.substr(0, 12), 1), "ends within a token");
  expect_refused(with(std::string("\x02\0\0\0\0\0\x80\x3f\xff\xff\xff\xff", 12), 1), "-1 bytes");
  expect_refused(with(std::string("\x02\0\0\0\0\0\x80\x3f\x03\0\0\0abc", 15), 1), "has 3 bytes");
  expect_refused(with(std::string("\x02\0\0\0\0\0\xc0\x7f\x01\0\0\0a", 13), 1), "has no score");
  expect_refused(with("", 1), "ends within a token");
  expect_refused([&] { load_tokenizer(folder / "nowhere", config_of(1)); }, "No such file");
}

TEST(ScoreTokenizer, MutationsAreReadOrRefused) {
  const TemporaryFolder folder;
  std::filesystem::copy(stories + "tok512.bin", folder / "tok512.bin");
  const auto file = folder / "tok512.bin";
  const auto load = [&] {
    const auto tokenizer = load_tokenizer(file, config_of(512));
    decoded(*tokenizer, tokenizer->encode("Once upon a time", true));
  };
  EXPECT_GT(refused_mutations(file, 1500, true, load), 6000);
}

TEST(Tokenizer, IsFoundBesideItsModel) {
  const TemporaryFolder folder;
  const auto model = folder / "stories260K.bin";
  expect_refused([&] { find_tokenizer(model, config_of(512)); }, "tokenizer.bin or tok512.bin");
  write_file(folder / "tok512.bin", "");
  EXPECT_EQ(find_tokenizer(model, config_of(512)), folder / "tok512.bin");
  write_file(folder / "tokenizer.bin", "");
  EXPECT_EQ(find_tokenizer(model, config_of(512)), folder / "tokenizer.bin");
  expect_refused([&] { find_tokenizer(folder.path(), config_of(512)); },
                 "no tokenizer.json or tokenizer.model");
  write_file(folder / "tokenizer.model", "");
  EXPECT_EQ(find_tokenizer(folder.path(), config_of(512)), folder / "tokenizer.model");
  write_file(folder / "tokenizer.json", "");
  EXPECT_EQ(find_tokenizer(folder.path(), config_of(512)), folder / "tokenizer.json");
}

/// Merges by the definition: finds the best pair, merges it, and repeats.
std::string merged_slowly(std::vector<std::string> parts, const std::map<std::string, int>& ranks) {
  while (true) {
    auto best = ranks.end();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found == ranks.end()) continue;
      if (best != ranks.end() && best->second <= found->second) continue;
      best = found;
      at = i;
    }
    if (best == ranks.end()) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::string text;
  for (const std::string& part : parts) text += part + "|";
  return text;
}

// Random vocabularies over three letters, in which many merges compete.
TEST(Merges, AreThoseOfTheirDefinition) {
  std::mt19937_64 random(7);
  const auto letters = [&](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += static_cast<char>('a' + uniform_below(random, 3));
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::map<std::string, int> ranks;
    for (int i = 0; i < 12; ++i) {
      const auto rank = static_cast<int>(uniform_below(random, 6));  // many are equal
      ranks.emplace(letters(2 + uniform_below(random, 4)), rank);
    }
    const std::string text = letters(1 + uniform_below(random, 40));
    std::vector<TextSymbol> symbols;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < text.size(); ++i) {
      symbols.push_back({0, i, i + 1});
      parts.emplace_back(1, text[i]);
    }
    const auto find = [&](const TextSymbol& a, const TextSymbol& b) -> std::optional<TextMerge> {
      const auto found = ranks.find(text.substr(a.begin, b.end - a.begin));
      if (found == ranks.end()) return std::nullopt;
      return TextMerge{static_cast<double>(found->second), 0};
    };
    std::string quick;
    for (const TextSymbol& symbol : merge_symbols(symbols, find)) {
      quick += text.substr(symbol.begin, symbol.end - symbol.begin) + "|";
    }
    EXPECT_EQ(quick, merged_slowly(parts, ranks)) << text;
  }
}

// A megabyte without a word boundary: a quadratic encoder would exceed any deadline.
TEST(ScoreTokenizer, LongTextsAreNoTrouble) {
  const auto tokenizer = load_tokenizer(stories + "tok512.bin", config_of(512));
  std::string text;
  while (text.size() < 1000000) text += "Once upon a time, there was \u00e9 ";
  const Ids ids = tokenizer->encode(text, true);
  EXPECT_EQ(decoded(*tokenizer, ids), text);
}

}  // namespace
}  // namespace greta::test::tokenizer_test
