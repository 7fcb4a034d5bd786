// Protects: tokenizer.json files of Llama 2 and 3 give the published tokens, and unsupported or
// malformed ones are rejected.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/pipeline/models/text/bpe_model.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/decoded_text.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::json_tokenizer_test {
namespace {

using nlohmann::json;
using test::expect_refused;
using test::refused_mutations;
using test::TemporaryFolder;
using test::write_file;
using Ids = std::vector<std::int32_t>;

const char* const llama3_words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json special(int id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}
json beginning(const char* token, int id) {
  return {{"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", token}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"special_tokens", {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
}

json pair(const char* left, const char* right) {
  return json::array({left, right});
}

/// A vocabulary like Llama 2's: byte tokens at 3 … 258, then "\u2581" 259, "h" 260, "e", "l", "o"
/// 263, "he" 264, "ll" 265, "hell" 266, "hello" 267, "\u2581hello" 268.
json llama2() {
  json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = byte + 3;
  int id = 259;
  for (const char* token :
       {"\u2581", "h", "e", "l", "o", "he", "ll", "hell", "hello", "\u2581hello"}) {
    vocab[token] = id++;
  }
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  const json restore = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
  return {{"added_tokens", {special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, replace}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", beginning("<s>", 1)},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {restore,
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", {"h e", "l l", "he ll", "hell o", "\u2581 hello"}}}}};
}

/// Returns the character that stands for a byte in a byte-level vocabulary.
std::string character(int byte) {
  for (int point = 0; point < 0x180; ++point) {
    const std::string text = point < 0x80 ? std::string(1, static_cast<char>(point))
                                          : std::string{static_cast<char>(0xc0 | (point >> 6)),
                                                        static_cast<char>(0x80 | (point & 0x3f))};
    const auto bytes = byte_level_bytes(text);
    if (bytes && *bytes == std::string(1, static_cast<char>(byte))) return text;
  }
  return {};
}

/// A vocabulary like Llama 3's: the id of a byte is its value, then "he" 256, "ll" 257, "hell" 258,
/// "hello" 259, " hello" 260, "123" 261 without a merge; <|begin|> 262, <|end|> 263.
json llama3() {
  json vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[character(byte)] = byte;
  int id = 256;
  for (const char* token : {"he", "ll", "hell", "hello", "\u0120hello", "123"}) vocab[token] = id++;
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", llama3_words}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  return {{"added_tokens", {special(262, "<|begin|>"), special(263, "<|end|>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
          {"post_processor",
           {{"type", "Sequence"}, {"processors", {bytes, beginning("<|begin|>", 262)}}}},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"unk_token", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", true},
            {"vocab", vocab},
            {"merges", json::array({pair("h", "e"), pair("l", "l"), pair("he", "ll"),
                                    pair("hell", "o"), pair("\u0120", "hello")})}}}};
}

class JsonTokenizer : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const json& file) {
    write_file(folder_ / "tokenizer.json", file.dump());
    return load_tokenizer(folder_.path(), config_of(300));
  }

  TemporaryFolder folder_;
};

TEST_F(JsonTokenizer, Llama2MergesByRank) {
  const auto tokenizer = load(llama2());
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->encode("hello", true), (Ids{1, 268}));
  EXPECT_EQ(tokenizer->encode("hello hello", false), (Ids{268, 268}));
  EXPECT_EQ(tokenizer->encode("hellhe", false), (Ids{259, 266, 264}));
  EXPECT_EQ(tokenizer->encode("", true), (Ids{1}));
  EXPECT_EQ(tokenizer->encode(" ", false), (Ids{259, 259}));
}

TEST_F(JsonTokenizer, Llama2FallsBackToBytes) {
  const auto tokenizer = load(llama2());
  const Ids ids = tokenizer->encode("hello \u00e9x", false);
  EXPECT_EQ(ids, (Ids{268, 259, 0xc3 + 3, 0xa9 + 3, 'x' + 3}));
  EXPECT_EQ(decoded(*tokenizer, ids), "hello \u00e9x");
}

// Consecutive unknown characters are one token if the file requests it.
TEST_F(JsonTokenizer, UnknownCharactersAreFused) {
  json file = llama2();
  file["model"]["byte_fallback"] = false;
  EXPECT_EQ(load(file)->encode("hello\u00e9\u00e9h", false), (Ids{268, 0, 260}));
  file["model"]["fuse_unk"] = false;
  EXPECT_EQ(load(file)->encode("hello\u00e9\u00e9h", false), (Ids{268, 0, 0, 260}));
  file["model"]["unk_token"] = nullptr;
  expect_refused([&] { load(file)->encode("\u00e9", false); }, "no token for '\u00e9'");
}

TEST_F(JsonTokenizer, SpecialTokensAreFoundInTexts) {
  const auto tokenizer = load(llama2());
  const Ids ids = tokenizer->encode("hello</s>hello<s>", true);
  EXPECT_EQ(ids, (Ids{1, 268, 2, 268, 1}));
  EXPECT_EQ(decoded(*tokenizer, ids), "hello hello");
  // The space that is prepended to a text is that before its first token with a text.
  EXPECT_EQ(decoded(*tokenizer, {1, 2, 268, 1, 268}), "hello hello");
  EXPECT_EQ(decoded(*tokenizer, {1, 259, 268}), " hello");
  const auto other = load(llama3());
  EXPECT_EQ(other->encode("<|end|>hello<|end", false), (Ids{263, 259, '<', '|', 'e', 'n', 'd'}));
}

TEST_F(JsonTokenizer, MetaspaceIsTheSameWithAPreTokenizer) {
  json file = llama2();
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {{"type", "Metaspace"},
                           {"replacement", "\u2581"},
                           {"prepend_scheme", "first"},
                           {"split", false}};
  file["decoder"] = file["pre_tokenizer"];
  auto tokenizer = load(file);
  EXPECT_EQ(tokenizer->encode("hello hello", true), (Ids{1, 268, 268}));
  EXPECT_EQ(tokenizer->encode(" hello", true), (Ids{1, 268}));
  // Only the first part of a text gets a space.
  EXPECT_EQ(tokenizer->encode("hello</s>hello", false), (Ids{268, 2, 267}));
  EXPECT_EQ(decoded(*tokenizer, {1, 268, 268}), "hello hello");
  file["pre_tokenizer"]["split"] = true;
  file["model"]["merges"].push_back(pair("o", "\u2581"));  // never within a word
  file["model"]["vocab"]["o\u2581"] = 269;
  tokenizer = load(file);
  EXPECT_EQ(tokenizer->encode("o o  hello", false), (Ids{259, 263, 259, 263, 259, 268}));
}

TEST_F(JsonTokenizer, Llama3MergesWithinWords) {
  const auto tokenizer = load(llama3());
  EXPECT_EQ(tokenizer->bos(), 262);
  EXPECT_EQ(tokenizer->encode("hello hello", true), (Ids{262, 259, 260}));
  EXPECT_EQ(tokenizer->encode("", true), (Ids{262}));
  // Digits are split by threes. "123" is a token although no merge produces it.
  EXPECT_EQ(tokenizer->encode("1234", false), (Ids{261, '4'}));
  const std::string text = "\u00e9 \U0001f600\n";
  const Ids ids = tokenizer->encode(text, false);
  EXPECT_EQ(ids, (Ids{0xc3, 0xa9, ' ', 0xf0, 0x9f, 0x98, 0x80, '\n'}));
  EXPECT_EQ(decoded(*tokenizer, ids), text);
}

/// Qwen's files compose characters first: both spellings of a text have the same tokens.
TEST_F(JsonTokenizer, NfcComposesCharacters) {
  json composing = llama3();
  composing["normalizer"] = {{"type", "NFC"}};
  const auto tokenizer = load(composing), plain = load(llama3());
  // An accent after its letter, two of them in another order, Hangul's parts, and the angstrom
  // sign.
  const std::pair<std::string, std::string> spellings[] = {
      {"e\u0301", "\u00e9"},
      {"q\u0307\u0323", "q\u0323\u0307"},
      {"\u1112\u1161\u11ab", "\ud55c"},
      {"\u212b", "\u00c5"},
      {"hello<|end|>e\u0301", "hello<|end|>\u00e9"}};
  for (const auto& [apart, together] : spellings) {
    EXPECT_EQ(tokenizer->encode(apart, true), plain->encode(together, true)) << together;
    EXPECT_NE(plain->encode(apart, true), plain->encode(together, true)) << together;
  }
  EXPECT_EQ(tokenizer->encode("hello \u00e9\ufb01", true),
            plain->encode("hello \u00e9\ufb01", true));
}

TEST_F(JsonTokenizer, TextsHaveTheNormalFormOfTheFile) {
  const auto plain = load(llama3());
  const auto ids_in = [&](const char* form, const std::string& text) {
    json file = llama3();
    file["normalizer"] = {{"type", form}};
    return load(file)->encode(text, true);
  };
  // An accent, a ligature, and a digit in a circle.
  const std::string text = "\u00e9 \ufb01 \u2460";
  EXPECT_EQ(ids_in("NFC", text), plain->encode(text, true));
  EXPECT_EQ(ids_in("NFD", text), plain->encode("e\u0301 \ufb01 \u2460", true));
  EXPECT_EQ(ids_in("NFKC", text), plain->encode("\u00e9 fi 1", true));
  EXPECT_EQ(ids_in("NFKD", text), plain->encode("e\u0301 fi 1", true));
}

TEST_F(JsonTokenizer, IgnoreMergesIsAnOption) {
  json file = llama3();
  file["model"]["ignore_merges"] = false;
  EXPECT_EQ(load(file)->encode("123", false), (Ids{'1', '2', '3'}));
}

TEST_F(JsonTokenizer, SplitsBehaveAsTheFileSays) {
  json file = llama3();
  json& step = file["pre_tokenizer"]["pretokenizers"][0];
  step["pattern"] = {{"String", "hello"}};
  EXPECT_EQ(load(file)->encode("xhello", false), (Ids{'x', 259}));
  step["behavior"] = "Removed";
  EXPECT_EQ(load(file)->encode("xhello1", false), (Ids{'x', '1'}));
  step["invert"] = true;
  EXPECT_EQ(load(file)->encode("xhello1", false), (Ids{259}));
  step["pattern"] = {{"Regex", "[^ ]+"}};
  step["invert"] = false;
  step["behavior"] = "MergedWithPrevious";
  EXPECT_EQ(load(file)->encode(" hello", false), (Ids{260}));  // one word with its space
  step["behavior"] = "MergedWithNext";
  EXPECT_EQ(load(file)->encode(" hello", false), (Ids{' ', 259}));
}

// A token may take the white space beside it, also that of Unicode, and what another one took.
TEST_F(JsonTokenizer, TokensStripSpaces) {
  json file = llama3();
  const auto tokenizer = [&](bool left, bool right) {
    file["added_tokens"][1]["lstrip"] = left;
    file["added_tokens"][1]["rstrip"] = right;
    return load(file);
  };
  const std::string text = "h \t<|end|>\n\u00a0\u3000 h", twice = " <|end|> \u2003 <|end|> ";
  const Ids none = load(llama3())->encode(text, false);
  EXPECT_EQ(tokenizer(false, false)->encode(text, false), none);
  EXPECT_EQ(tokenizer(true, false)->encode(text, false),
            load(llama3())->encode("h<|end|>\n\u00a0\u3000 h", false));
  EXPECT_EQ(tokenizer(false, true)->encode(text, false),
            load(llama3())->encode("h \t<|end|>h", false));
  EXPECT_EQ(tokenizer(true, true)->encode(text, false), (Ids{'h', 263, 'h'}));
  EXPECT_EQ(tokenizer(true, true)->encode(twice, false), (Ids{263, 263}));
  EXPECT_EQ(tokenizer(true, false)->encode(twice, false), (Ids{263, 263, ' '}));
  EXPECT_EQ(tokenizer(true, true)->encode("<|end|>", false), (Ids{263}));
  EXPECT_EQ(tokenizer(true, true)->encode("\u200b<|end|>", false),
            load(llama3())->encode("\u200b<|end|>", false));  // no white space
  // White space that was taken may have a token itself, as in the library.
  file["added_tokens"].push_back(special(264, "  "));
  EXPECT_EQ(tokenizer(false, true)->encode("<|end|>  \th", false), (Ids{263, 264, '\t', 'h'}));
  EXPECT_EQ(tokenizer(false, true)->encode("<|end|> \th", false), (Ids{263, 'h'}));
  file["added_tokens"].erase(2);
  const std::string spaces(300000, ' ');
  EXPECT_EQ(tokenizer(true, true)->encode(spaces + "<|end|>" + spaces, false), (Ids{263}));
  file["added_tokens"].push_back(special(264, "\n"));
  for (const char* side : {"lstrip", "rstrip"}) {
    file["added_tokens"][2]["lstrip"] = file["added_tokens"][2]["rstrip"] = false;
    file["added_tokens"][2][side] = true;
    EXPECT_EQ(load(file)->encode(std::string(300000, '\n'), false), Ids(300000, 264));
  }
}

// Tokens that are marked `normalized` are found in normalised texts, as what becomes of themselves.
TEST_F(JsonTokenizer, NormalisedTokensAreFoundInNormalisedTexts) {
  json two = llama2();
  two["added_tokens"].push_back(special(270, "[I]"));
  two["added_tokens"][3]["normalized"] = true;
  auto tokenizer = load(two);  // it becomes "\u2581[I]"
  EXPECT_EQ(tokenizer->encode("[I]hello", false), (Ids{270, 267}));
  EXPECT_EQ(tokenizer->encode("hello [I] hello", false), (Ids{268, 270, 268}));
  EXPECT_EQ(tokenizer->encode("h[I]", false), (Ids{259, 260, '[' + 3, 'I' + 3, ']' + 3}));
  EXPECT_EQ(tokenizer->encode("</s>[I]", false), (Ids{2, 270}));
  EXPECT_EQ(decoded(*tokenizer, {270, 268}), "hello");
  json three = llama3();
  three["normalizer"] = {{"type", "NFC"}};
  three["added_tokens"].push_back(special(264, "caf\u00e9"));
  const std::string twice = "caf\u00e9cafe\u0301";
  EXPECT_EQ(load(three)->encode(twice, false), (Ids{264, 'c', 'a', 'f', 0xc3, 0xa9}));
  three["added_tokens"][2]["normalized"] = true;
  EXPECT_EQ(load(three)->encode(twice, false), (Ids{264, 264}));
}

TEST_F(JsonTokenizer, TokensOfWholeWordsAreNotPartsOfOthers) {
  json file = llama3();
  file["added_tokens"][1]["content"] = "el";
  EXPECT_EQ(load(file)->encode("hello", false), (Ids{'h', 263, 'l', 'o'}));
  file["added_tokens"][1]["single_word"] = true;
  const auto tokenizer = load(file);
  EXPECT_EQ(tokenizer->encode("el", false), (Ids{263}));
  EXPECT_EQ(tokenizer->encode("-el\u2014", false), (Ids{'-', 263, 0xe2, 0x80, 0x94}));
  // A letter, a digit, a connector, a mark and a joiner beside it, on either side.
  for (const std::string& other : {"\u00e9", "1", "_", "\u0301", "\u200d"}) {
    for (const std::string& text : {other + "el", "el" + other}) {
      EXPECT_EQ(tokenizer->encode(text, false), load(llama3())->encode(text, false)) << text;
    }
  }
}

TEST_F(JsonTokenizer, DigitsAreSplit) {
  json file = llama3();
  json& step = file["pre_tokenizer"]["pretokenizers"][0];
  step = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(load(file)->encode("x1234", false), (Ids{'x', '1', '2', '3', '4'}));
  step["individual_digits"] = false;
  EXPECT_EQ(load(file)->encode("x123", false), (Ids{'x', 261}));
}

// Files of tuned models have tokens that nobody added to the model.
TEST_F(JsonTokenizer, TokensBeyondTheModelAreRefusedInTexts) {
  json file = llama3();
  file["added_tokens"].push_back(special(300, "[PAD]"));
  const auto tokenizer = load(file);
  EXPECT_EQ(tokenizer->encode("hello", false), (Ids{259}));
  EXPECT_LE(tokenizer->vocab_size(), 300);
  expect_refused([&] { tokenizer->encode("hello[PAD]", false); },
                 "the text has token 300, of which the model has 300");
}

// The post processor says which token a text begins with. The library's class for Llamas adds one
// where there is none.
TEST_F(JsonTokenizer, TheModelsBosAloneIsNotInFrontOfTexts) {
  json file = llama3();
  const auto begins_with = [&] {
    write_file(folder_ / "tokenizer.json", file.dump());
    LlamaConfig config;
    config.vocab = 300;
    config.bos = 7;
    return load_tokenizer(folder_.path(), config)->bos();
  };
  EXPECT_EQ(begins_with(), 262);
  file["post_processor"] = nullptr;
  EXPECT_EQ(begins_with(), -1);
  const auto told = [&](const json& also) {
    write_file(folder_ / "tokenizer_config.json", also.dump());
    return begins_with();
  };
  EXPECT_EQ(told({{"tokenizer_class", "PreTrainedTokenizerFast"}, {"add_bos_token", true}}), -1);
  EXPECT_EQ(told({{"tokenizer_class", "LlamaTokenizerFast"}}), 7);
  EXPECT_EQ(told({{"tokenizer_class", "LlamaTokenizer"}, {"add_bos_token", false}}), -1);
  expect_refused(
      [&] {
        told({{"tokenizer_class", "LlamaTokenizer"}, {"add_bos_token", 1}});
      },
      "add_bos_token is 1");
}

TEST_F(JsonTokenizer, LongTextsAreNoTrouble) {
  std::string text;
  while (text.size() < 1000000) text += "hellohello\u00e9";
  for (const json& file : {llama2(), llama3()}) {
    const auto tokenizer = load(file);
    EXPECT_EQ(decoded(*tokenizer, tokenizer->encode(text, true)), text);
  }
}

// Unsupported features are rejected by name and never ignored.
TEST_F(JsonTokenizer, RefusesWhatItDoesNotKnow) {
  const auto with = [&](const json& base, const char* path, const json& value) {
    return [this, base, path, value] {
      json file = base;
      file[json::json_pointer(path)] = value;
      load(file);
    };
  };
  const json two = llama2(), three = llama3();
  expect_refused(with(two, "/model/type", "Unigram"), "'Unigram'; allowed: BPE");
  expect_refused(with(two, "/model/end_of_word_suffix", "</w>"), "end_of_word_suffix");
  expect_refused(with(two, "/model/unk_token", "<none>"), "'<none>' isn't in vocab");
  expect_refused(with(two, "/model/vocab/h", 300), "the id of 'h'");
  expect_refused(with(two, "/model/vocab/h", -1), "the id of 'h'");
  expect_refused(with(two, "/model/vocab/h", 5), "two tokens have id 5");
  expect_refused(with(two, "/model/merges/0", "h x"), "merge 0 has a token");
  expect_refused(with(two, "/model/merges/0", "h e l"), "merge 0 is neither");
  expect_refused(with(two, "/model/merges/0", json::array({"h"})), "merge 0 is neither");
  expect_refused(with(two, "/model/merges", "h e"), "merges is not a list");
  expect_refused(with(two, "/normalizer/normalizers/0/type", "Nmt"), "'Nmt' isn't known");
  expect_refused(with(two, "/normalizer/normalizers/1/pattern", {{"Regex", "a"}}), "no String");
  expect_refused(with(two, "/pre_tokenizer", {{"type", "Whitespace"}}), "'Whitespace' isn't known");
  expect_refused(with(two, "/decoder", nullptr), "has no decoder");
  expect_refused(with(two, "/decoder/decoders/3/start", 0), "take one space");
  expect_refused(with(two, "/added_tokens/1/id", 5), "'<s>' is token 5");
  expect_refused(with(two, "/added_tokens/1/single_word", 1), "single_word is 1");
  expect_refused(with(two, "/added_tokens/1/lstrip", 1), "lstrip is 1");
  expect_refused(with(two, "/added_tokens/1/content", ""), "token 1 is empty");
  expect_refused(with(three, "/pre_tokenizer/pretokenizers/0/behavior", "Merged"),
                 "behavior is 'Merged'; allowed: Isolated, Removed");
  expect_refused(with(three, "/pre_tokenizer/pretokenizers/0/pattern", {{"String", ""}}),
                 "its pattern is empty");
  expect_refused(with(three, "/pre_tokenizer/pretokenizers/0/pattern/Regex", "("), "wrong at byte");
  expect_refused(with(three, "/post_processor/processors/1/type", "Bert"), "'Bert' isn't known");
}

TEST_F(JsonTokenizer, EveryByteHasAToken) {
  json file = llama3();
  file["model"]["vocab"].erase(character(0x00));
  expect_refused([&] { load(file); }, "no token for byte 0x00");
}

TEST_F(JsonTokenizer, MutationsAreReadOrRefused) {
  for (const json& file : {llama2(), llama3()}) {
    load(file);
    LlamaConfig config;
    config.vocab = 300;
    const auto load_again = [&] {
      const auto tokenizer = load_tokenizer(folder_.path(), config);
      decoded(*tokenizer, tokenizer->encode("hello </s>1234<|end|> \u00e9", true));
    };
    EXPECT_GT(refused_mutations(folder_ / "tokenizer.json", 1000, false, load_again), 500);
  }
}

}  // namespace
}  // namespace greta::test::json_tokenizer_test
