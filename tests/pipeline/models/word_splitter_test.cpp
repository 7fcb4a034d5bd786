// Protects: texts are split into words as tokenizer.json files say, and patterns that take too long
// are rejected.

#include "runtime/pipeline/models/text/word_splitter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/layers.hpp"
#include "tests/pipeline/model_files.hpp"

namespace greta::test::word_splitter_test {
namespace {

const char* const llama3_words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(WordSplitter, SplitsAsLlama3) {
  const WordSplitter splitter(llama3_words);
  const auto words = [&](std::string_view text) {
    std::string all;
    for (const std::string_view word : splitter.split(text)) all += std::string(word) + "|";
    return all;
  };
  EXPECT_EQ(words("I'll SAY'LL it's"), "I|'ll| SAY|'LL| it|'s|");
  EXPECT_EQ(words("a   b"), "a|  | b|");
  EXPECT_EQ(words("a  \n\n  b "), "a|  \n\n| | b| |");
  EXPECT_EQ(words("x=12345;"), "x|=|123|45|;|");
  EXPECT_EQ(words("(hi)!?\n..."), "(hi|)!?\n|...|");
  EXPECT_EQ(words("\u4f60\u597d \u00c9t\u00e9 \u0662\u0663"),
            "\u4f60\u597d| \u00c9t\u00e9| |\u0662\u0663|");
  EXPECT_EQ(words(""), "");
  EXPECT_EQ(words(std::string(300000, ' ') + "a"), std::string(299999, ' ') + "| a|");
}

TEST(WordSplitter, KeepsWhatLiesBetweenMatches) {
  const auto words = WordSplitter("b+|").split("abba");
  EXPECT_EQ(words, (std::vector<std::string_view>{"a", "bb", "a"}));
}

// The example of the documentation of Hugging Face's library.
TEST(WordSplitter, BehavesAsTheLibrarySays) {
  const auto words = [](const char* behaviour, const std::string& text, bool inverted = false) {
    const WordSplitter splitter("-", {*split_behaviour_from_string(behaviour), inverted, true});
    std::string all;
    for (const std::string_view word : splitter.split(text)) all += std::string(word) + "|";
    return all;
  };
  const std::string text = "the-final--countdown";
  EXPECT_EQ(words("Isolated", text), "the|-|final|-|-|countdown|");
  EXPECT_EQ(words("Removed", text), "the|final|countdown|");
  EXPECT_EQ(words("MergedWithPrevious", text), "the-|final-|-|countdown|");
  EXPECT_EQ(words("MergedWithNext", text), "the|-final|-|-countdown|");
  EXPECT_EQ(words("Contiguous", text), "the|-|final|--|countdown|");
  EXPECT_EQ(words("Removed", text, true), "-|-|-|");
  EXPECT_EQ(words("MergedWithPrevious", text, true), "the|-final|-|-countdown|");
  EXPECT_EQ(words("MergedWithNext", text, true), "the-|final-|-|countdown|");
  for (const char* behaviour : {"Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}) {
    EXPECT_EQ(words(behaviour, ""), "");
    EXPECT_EQ(words(behaviour, "-"), "-|");
    EXPECT_EQ(words(behaviour, "a"), "a|");
  }
  EXPECT_EQ(words("Removed", "--"), "");
  EXPECT_FALSE(split_behaviour_from_string("Merged"));
  // A text has no classes of characters.
  const WordSplitter dot(".", {.literal = true});
  EXPECT_EQ(dot.split("a.b"), (std::vector<std::string_view>{"a", ".", "b"}));
}

TEST(WordSplitter, RefusesPatternsThatTakeForever) {
  expect_refused([] { WordSplitter("(a"); }, "wrong at byte 2");
  expect_refused([] { WordSplitter(std::string(5000, 'a')); }, "longer than");
  const WordSplitter slow("(a|aa)+$");
  expect_refused([&] { slow.split(std::string(5000, 'a') + '!'); }, "can't split");
}

}  // namespace
}  // namespace greta::test::word_splitter_test
