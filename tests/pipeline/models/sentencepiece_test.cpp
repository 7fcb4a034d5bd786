// Protects: a tokenizer.model of SentencePiece gives the ids and texts that the library gives, what
// stands in files beside it counts, and damaged and unknown models are rejected with one line.

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/pipeline/models/text/sentencepiece_file.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/decoded_text.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::sentencepiece_test {
namespace {

using Ids = std::vector<std::int32_t>;

const std::filesystem::path data = std::string(GRETA_TEST_DATA) + "/sentencepiece";

/// Fields of messages in the wire format, of fewer than 128 bytes.
std::string varint(int number, std::int64_t value) {
  std::string bytes;
  for (std::uint64_t rest : {std::uint64_t(number) << 3U, std::uint64_t(value)}) {
    for (; rest > 127; rest >>= 7U) bytes += static_cast<char>(rest | 128U);
    bytes += static_cast<char>(rest);
  }
  return bytes;
}
std::string message(int number, const std::string& bytes) {
  std::string key = varint(number, static_cast<std::int64_t>(bytes.size()));
  key[0] = static_cast<char>(key[0] | 2);
  return key + bytes;
}
std::string piece(const std::string& text, float score = 0, TokenKind kind = TokenKind::normal) {
  std::string number(4, '\0');
  std::memcpy(number.data(), &score, 4);
  return message(1, message(1, text) + "\x15" + number + varint(3, static_cast<int>(kind)));
}
const std::string unknown = piece("<unk>", 0, TokenKind::unknown);
const std::string merged = message(2, varint(3, 2)), likely = message(2, varint(3, 1));

class SentencePiece : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const std::string& bytes, std::int64_t vocab = 100) {
    write_file(folder_ / "tokenizer.model", bytes);
    return load_tokenizer(folder_.path(), config_of(vocab));
  }
  void refused(const std::string& bytes, const std::string& words) {
    expect_refused([&] { load(bytes); }, words);
  }
  TemporaryFolder folder_;
};

// By version 0.1.97 of the library (scripts/sentencepiece_models.py).
TEST_F(SentencePiece, GivesTheIdsAndTextsOfTheLibrary) {
  const nlohmann::json expected = nlohmann::json::parse(read_file(data / "expected.json"));
  ASSERT_GT(expected.size(), 40U);
  for (const char* name : {"bpe", "unigram"}) {
    const auto tokenizer = load(read_file(data / (std::string(name) + ".model")), 512);
    for (const nlohmann::json& one : expected) {
      const Ids ids = tokenizer->encode(one.at("text").get<std::string>(), false);
      EXPECT_EQ(ids, one.at(name).at("ids").get<Ids>()) << name << one;
      EXPECT_EQ(decoded(*tokenizer, ids), one.at(name).at("decoded").get<std::string>()) << one;
    }
  }
}

TEST_F(SentencePiece, ControlPiecesAreRecognisedInTexts) {
  const auto tokenizer = load(read_file(data / "bpe.model"), 512);
  const Ids once = tokenizer->encode("Once", false);
  Ids all{1, 1};
  all.insert(all.end(), once.begin(), once.end());
  all.push_back(2);
  all.insert(all.end(), once.begin(), once.end());
  EXPECT_EQ(tokenizer->encode("<s>Once</s>Once", true), all);
  EXPECT_EQ(decoded(*tokenizer, all), "Once Once");
  EXPECT_EQ(tokenizer->encode("<unk>", false), Ids{0});
  EXPECT_EQ(tokenizer->decode(0, false), " \u2047 ");
  EXPECT_EQ(tokenizer->decode(420, false), "\ufffd");
  EXPECT_EQ(tokenizer->vocab_size(), 420);
  expect_refused([&] { tokenizer->encode("a\xff", true); }, "isn't UTF-8 from byte 1 on");
}

TEST_F(SentencePiece, FilesBesideItCount) {
  const std::string bytes = read_file(data / "bpe.model");
  const Ids once = load(bytes, 512)->encode("Once", false);
  nlohmann::json config = {{"add_bos_token", false}, {"legacy", false}};
  write_file(folder_ / "tokenizer_config.json", config.dump());
  write_file(folder_ / "added_tokens.json", R"({"<|im_start|>": 420, "<s>": 1, "<more>": 512})");
  auto tokenizer = load(bytes, 512);
  EXPECT_EQ(tokenizer->bos(), -1);
  EXPECT_EQ(tokenizer->encode("Once", true), once);
  Ids ids = tokenizer->encode("Once<|im_start|> Once", true);
  Ids all = once;
  all.push_back(420);
  all.insert(all.end(), once.begin(), once.end());
  EXPECT_EQ(ids, all) << "no space is added after a token";
  EXPECT_EQ(decoded(*tokenizer, ids), "Once<|im_start|> Once");
  EXPECT_EQ(tokenizer->vocab_size(), 421);
  config["added_tokens_decoder"] = {
      {"2", {{"content", "</s>"}}},
      {"421", {{"content", "<|im_end|>"}, {"special", true}, {"rstrip", true}}}};
  write_file(folder_ / "tokenizer_config.json", config.dump());
  tokenizer = load(bytes, 512);
  ids = tokenizer->encode("<|im_end|>  ", true);
  EXPECT_EQ(ids, Ids{421});
  EXPECT_EQ(decoded(*tokenizer, ids), "");
  expect_refused([&] { load(bytes, 419); }, "it has 420 tokens, the model 419");
  const auto refused_token = [&](const nlohmann::json& token, const std::string& words) {
    config["added_tokens_decoder"] = token;
    write_file(folder_ / "tokenizer_config.json", config.dump());
    expect_refused([&] { load(bytes, 512); }, words);
  };
  refused_token({{"2", {{"content", "<end>"}}}},
                "token 2 is '<end>', but '</s>' in tokenizer.model");
  refused_token({{"x", {{"content", "a"}}}}, "'x' is not the id of a token");
  refused_token({{"430", {{"content", ""}}}}, "token 430 is empty");
  refused_token({{"430", {{"content", "a"}, {"single_word", true}}}},
                "token 430: single_word is true");
  refused_token({{"430", {{"special", true}}}}, "added_tokens_decoder: token 430: has no content");
  refused_token({{"430", "a"}}, "token 430: is not a JSON object");
}

// A piece that is not used takes part in merges, and is divided into what it was merged of.
TEST_F(SentencePiece, UnusedPiecesAreDivided) {
  const std::string letters =
      piece("\u2581", -9) + piece("a", -9) + piece("b", -9) + piece("c", -9);
  const std::string pieces = unknown + letters + piece("ab", -1, TokenKind::unused) +
                             piece("abc", -2) + piece("\u2581ab", -3, TokenKind::unused);
  EXPECT_EQ(load(pieces + merged)->encode("abc", false), (Ids{1, 6}));
  EXPECT_EQ(load(pieces + merged)->encode("ab ab", false), (Ids{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(load(pieces + likely)->encode("ab", false), (Ids{1, 2, 3}));
  // Of unknown characters one after the other, one token is left.
  EXPECT_EQ(load(pieces + likely)->encode("xyab\u00e9", false), (Ids{1, 0, 2, 3, 0}));
}

TEST_F(SentencePiece, OtherModelsAreRefused) {
  const std::string good = unknown + piece("a");
  load(good);
  refused("", "it has 0 unknown pieces, not 1");
  refused("IQ== 0\nIg== 1\n", "it is a list of tokens for tiktoken");
  refused("IgABAgME 10\r\n", "it is a list of tokens for tiktoken");
  refused(good + message(2, varint(3, 3)), "model_type is 3; allowed: 1 (unigram), 2 (BPE)");
  refused(good + message(2, varint(24, 1)), "treat_whitespace_as_suffix is true; allowed: false");
  refused(good + message(2, varint(35, 1)),
          "it has 0 of 256 bytes, although byte_fallback is true");
  refused(good + message(2, message(3, "x")), "field 3 is of type 2");
  refused(good + message(3, varint(5, 0)), "escape_whitespaces is false; allowed: true");
  refused(good + message(3, message(2, "abc")), "precompiled_charsmap is damaged");
  refused(good + message(5, message(2, "abc")), "the denormalizer has a precompiled_charsmap");
  refused(good + unknown, "piece 2 occurs twice");
  refused(good + piece("<more>", 0, TokenKind::unknown), "it has 2 unknown pieces, not 1");
  refused(good + piece(""), "piece 2 is empty");
  refused(good + piece("\xff"), "piece 2 isn't UTF-8");
  refused(good + piece("b", NAN), "the score of piece 2 is NaN");
  refused(good + piece("b", 0, TokenKind{7}), "piece 2 is of kind 7");
  refused(good + piece("b", 0, TokenKind::byte), "piece 2 is not a byte");
  refused(good + varint(1, 1), "it has other fields");
  refused(good + "\x0b", "it has a field of an unknown type");
  refused(good + std::string(11, '\xff'), "it has an integer of more than 64 bits");
  refused(good.substr(0, good.size() - 1), "it ends within a field");
}

TEST_F(SentencePiece, AFolderOfItsNameIsRefused) {
  const std::filesystem::path path = folder_ / "tokenizer.model";
  std::filesystem::create_directory(path);
  expect_refused([&] { load_tokenizer(folder_.path(), config_of(100)); },
                 path.string() + ": is a folder");
  expect_refused([&] { load_tokenizer(path, config_of(100)); },
                 path.string() + ": found no tokenizer: no tokenizer.json or tokenizer.model");
}

TEST_F(SentencePiece, MutationsAreReadOrRefused) {
  for (const char* name : {"bpe.model", "unigram.model"}) {
    const auto file = folder_ / name;
    std::filesystem::copy(data / name, file);
    const auto use = [&] {
      const auto tokenizer = load_tokenizer(file, config_of(512));
      decoded(*tokenizer, tokenizer->encode("Once upon\ta time\u00bd <sep>a b", true));
    };
    EXPECT_GT(refused_mutations(file, 500, false, use), 50);
  }
}

}  // namespace
}  // namespace greta::test::sentencepiece_test
