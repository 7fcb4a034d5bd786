// Protects: the tokenizers in GGUF files give the tokens of the same tokenizers in their own
// formats, and files that contradict themselves are rejected.

#include <gtest/gtest.h>

#include "runtime/pipeline/models/text/bpe_model.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/decoded_text.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::gguf_tokenizer_test {
namespace {

using Ids = std::vector<std::int32_t>;

const std::string tok512 = std::string(GRETA_TEST_DATA) + "/stories260K/tok512.bin";
const std::vector<std::string> texts{"Once upon a time",
                                     "",
                                     " ",
                                     "  two  spaces ",
                                     "na\u00efve \U0001f600 \u4f60\u597d\tx\n",
                                     "She said: \"it's 12345 o'clock!\"\r\n\n  next",
                                     "hello hellohello 123 1234"};

class GgufTokenizer : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const GgufWriter& writer, std::int64_t vocab,
                                  std::int32_t bos = 1) {
    write_file(folder_ / "model.gguf", writer.bytes());
    LlamaConfig config;
    config.vocab = vocab;
    config.bos = bos;
    return load_tokenizer(folder_ / "model.gguf", config);
  }
  TemporaryFolder folder_;
};

struct Scored {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> kinds;

  GgufWriter writer() const {
    GgufWriter file;
    file.add_text("tokenizer.ggml.model", "llama");
    file.add_texts("tokenizer.ggml.tokens", tokens);
    file.add_numbers("tokenizer.ggml.scores", 6, scores);
    file.add_numbers("tokenizer.ggml.token_type", 5, kinds);
    return file;
  }
};

/// Converts the vocabulary of llama2.c, with spaces as "▁".
Scored stories_tokens() {
  const std::string bytes = read_file(tok512);
  Scored result;
  for (std::size_t at = 4; at < bytes.size();) {
    float score = 0;
    std::int32_t length = 0;
    std::memcpy(&score, bytes.data() + at, 4);
    std::memcpy(&length, bytes.data() + at + 4, 4);
    std::string token;
    for (const char c : bytes.substr(at + 8, static_cast<std::size_t>(length))) {
      token += c == ' ' ? "\u2581" : std::string(1, c);
    }
    const std::size_t id = result.tokens.size();
    if (id == 1) token = "<s>";
    if (id == 2) token = "</s>";
    result.kinds.push_back(id == 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1);
    result.tokens.push_back(token);
    result.scores.push_back(score);
    at += 8 + static_cast<std::size_t>(length);
  }
  return result;
}

TEST_F(GgufTokenizer, ScoresGiveTheTokensOfLlama2C) {
  const auto tokenizer = load(stories_tokens().writer(), 512);
  LlamaConfig config;
  config.vocab = 512;
  const auto other = load_tokenizer(tok512, config);
  EXPECT_EQ(tokenizer->encode("Once upon a time", true), (Ids{1, 403, 407, 261, 378}));
  for (const std::string& text : texts) {
    const Ids ids = tokenizer->encode(text, true);
    EXPECT_EQ(ids, other->encode(text, true)) << text;
    EXPECT_EQ(decoded(*tokenizer, ids), text);
  }
  EXPECT_EQ(tokenizer->encode("a\u2581b", false), other->encode("a b", false));
}

TEST_F(GgufTokenizer, ControlTokensAreRecognisedAndSpacesAreAChoice) {
  const Scored scored = stories_tokens();
  const auto tokenizer = load(scored.writer(), 512);
  const Ids ids = tokenizer->encode("Once</s>Once", true);
  EXPECT_EQ(ids, (Ids{1, 403, 2, 403}));
  EXPECT_EQ(tokenizer->decode(2, false), "");
  EXPECT_EQ(tokenizer->encode("Once<unk>Once", true), (Ids{1, 403, 0, 403}));
  GgufWriter bare = scored.writer();
  bare.add_flag("tokenizer.ggml.add_space_prefix", false);
  const auto without = load(bare, 512);
  EXPECT_EQ(without->encode(" Once", false), (Ids{403}));
  EXPECT_EQ(decoded(*without, {1, 403}), " Once");
  EXPECT_EQ(load(scored.writer(), 512, -1)->encode("Once", true), (Ids{403}));
}

TEST_F(GgufTokenizer, RefusesScoresThatContradictThemselves) {
  const auto with = [&](const auto& change) {
    return [this, change] {
      Scored scored = stories_tokens();
      change(scored);
      load(scored.writer(), 512);
    };
  };
  expect_refused(with([](Scored& s) { s.scores.pop_back(); }), "has 511 elements for 512 tokens");
  expect_refused(with([](Scored& s) { s.kinds.pop_back(); }), "token_type has 511 elements");
  expect_refused(with([](Scored& s) { s.kinds[5] = 7; }), "is 7 for token 5; allowed: 1 to 6");
  expect_refused(with([](Scored& s) { s.tokens[400] = s.tokens[401]; }), "has token 401 twice");
  expect_refused(with([](Scored& s) { s.tokens[400] = "\xff"; }), "token 400, which isn't UTF-8");
  expect_refused(with([](Scored& s) { s.scores[9] = std::nanf(""); }), "is NaN for token 9");
  expect_refused(with([](Scored& s) {
                   s.tokens.emplace_back("more");
                   s.scores.push_back(0);
                   s.kinds.push_back(1);
                 }),
                 "has 513 tokens, the model 512");
  GgufWriter unknown = stories_tokens().writer();
  unknown.add_u32("tokenizer.ggml.unknown_token_id", 512);
  expect_refused([&] { load(unknown, 512); }, "unknown_token_id is 512 of 512");
  GgufWriter other;
  expect_refused([&] { load(other, 512); }, "tokenizer.ggml.model is missing");
  other.add_text("tokenizer.ggml.model", "bert");
  expect_refused([&] { load(other, 512); }, "is 'bert'; allowed: llama, gpt2");
}

/// A vocabulary like Llama 3's, in the order of its ids; byte 0x20 is spelled U+0120.
struct Ranked {
  std::string pre = "llama-bpe";
  std::vector<std::string> tokens;
  std::vector<std::int32_t> kinds;
  std::vector<std::string> merges{"h e", "l l", "he ll", "hell o", "\u0120 hello"};

  Ranked() {
    std::vector<std::string> bytes(256);
    for (int point = 0x21; point < 0x144; ++point) {
      const std::string text = point < 0x80 ? std::string(1, static_cast<char>(point))
                                            : std::string{static_cast<char>(0xc0 | (point >> 6)),
                                                          static_cast<char>(0x80 | (point & 0x3f))};
      if (const auto byte = byte_level_bytes(text)) {
        bytes[static_cast<unsigned char>((*byte)[0])] = text;
      }
    }
    tokens = bytes;
    for (const char* token : {"he", "ll", "hell", "hello", "\u0120hello", "123"}) {
      tokens.emplace_back(token);
    }
    kinds.assign(tokens.size(), 1);
    for (const char* token : {"<|begin|>", "<|end|>"}) tokens.emplace_back(token);
    kinds.insert(kinds.end(), {3, 3});
    tokens.emplace_back("<user>");
    kinds.push_back(4);
  }
  GgufWriter writer() const {
    GgufWriter file;
    file.add_text("tokenizer.ggml.model", "gpt2");
    file.add_text("tokenizer.ggml.pre", pre);
    file.add_texts("tokenizer.ggml.tokens", tokens);
    file.add_numbers("tokenizer.ggml.token_type", 5, kinds);
    file.add_texts("tokenizer.ggml.merges", merges);
    return file;
  }
};

TEST_F(GgufTokenizer, MergesAreThoseOfABytewiseVocabulary) {
  Ranked ranked;
  const auto tokenizer = load(ranked.writer(), 300, 262);
  EXPECT_EQ(tokenizer->encode("hello hello", true), (Ids{262, 259, 260}));
  EXPECT_EQ(tokenizer->encode("1234", false), (Ids{261, '4'}));  // words of up to three digits
  EXPECT_EQ(tokenizer->encode("he<|end|>he<user>", false), (Ids{256, 263, 256, 264}));
  EXPECT_EQ(decoded(*tokenizer, {262, 259, 260, 263, 264}), "hello hello<user>");
  for (const std::string& text : texts) {
    EXPECT_EQ(decoded(*tokenizer, tokenizer->encode(text, true)), text);
  }
  // Words of one digit are never "123".
  for (const char* pre : {"qwen2", "smollm", "gpt-2", "default", "deepseek-coder"}) {
    ranked.pre = pre;
    EXPECT_EQ(load(ranked.writer(), 300)->encode("123", false), (Ids{'1', '2', '3'})) << pre;
  }
  // What llama.cpp takes for unknown tokenizers parts signs from words, as does deepseek-coder.
  ranked.merges.emplace_back("a .");
  ranked.tokens.emplace_back("a.");
  ranked.kinds.push_back(1);
  for (const char* pre : {"default", "deepseek-coder"}) {
    ranked.pre = pre;
    EXPECT_EQ(load(ranked.writer(), 300)->encode("a.", false), (Ids{'a', '.'})) << pre;
  }
  ranked.pre = "tekken";
  EXPECT_EQ(load(ranked.writer(), 300)->encode("aB", false), (Ids{'a', 'B'}));
}

TEST_F(GgufTokenizer, RefusesMergesThatContradictThemselves) {
  const auto with = [&](const auto& change) {
    return [this, change] {
      Ranked ranked;
      change(ranked);
      load(ranked.writer(), 300);
    };
  };
  expect_refused(with([](Ranked& r) { r.pre = "dbrx"; }), "is 'dbrx'; allowed: llama-bpe");
  expect_refused(with([](Ranked& r) { r.merges.emplace_back("h zz"); }), "isn't in vocab");
  expect_refused(with([](Ranked& r) { r.merges.emplace_back("hzz"); }), "merge 5 is neither");
  expect_refused(with([](Ranked& r) { r.tokens[65] = "zz"; }), "no token for byte 0x41");
}

}  // namespace
}  // namespace greta::test::gguf_tokenizer_test
