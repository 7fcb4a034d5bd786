// Protects: text that is written as it is generated is valid UTF-8.

#include "runtime/device/text/utf8.hpp"

#include <gtest/gtest.h>

#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"

namespace greta::test::utf8_test {
namespace {

TEST(Utf8, KnowsWhatIsWellFormed) {
  for (const char* text : {"", "a", "\u00e9", "\u20ac", "\U0001f600", "\ud7ff\ue000\U0010ffff"}) {
    EXPECT_FALSE(invalid_utf8(text)) << text;
  }
  // A lone continuation byte, an overlong form, a surrogate, a code above U+10FFFF, and a truncated
  // character.
  EXPECT_EQ(invalid_utf8("a\x80"), 1U);
  EXPECT_EQ(invalid_utf8("\xc0\xaf"), 0U);
  EXPECT_EQ(invalid_utf8("\xed\xa0\x80"), 0U);
  EXPECT_EQ(invalid_utf8("\xf4\x90\x80\x80"), 0U);
  EXPECT_EQ(invalid_utf8("ab\xe2\x82"), 2U);
}

/// Tokens that are the bytes 0 … 255.
class Bytes : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view, bool) const override { return {}; }
  std::string decode(std::int32_t id, bool) const override { return {static_cast<char>(id)}; }
  std::int64_t vocab_size() const override { return 256; }
  std::int32_t bos() const override { return -1; }
};

/// Returns the output after each byte, separated by bars, and at the end.
std::string streamed(std::string_view bytes) {
  const Bytes tokenizer;
  TextStream stream(tokenizer);
  std::string text;
  for (const char byte : bytes) text += stream.push(static_cast<unsigned char>(byte)) + "|";
  return text + stream.finish();
}

TEST(TextStream, HoldsBytesUntilACharacterIsComplete) {
  EXPECT_EQ(streamed("a\xe2\x82\xac"), "a|||\u20ac|");
  EXPECT_EQ(streamed("\xf0\x9f\x98\x80z"), "|||\U0001f600|z|");
}

// As the Unicode Standard recommends: one U+FFFD per maximal subpart of a character.
TEST(TextStream, ReplacesWhatCannotBecomeACharacter) {
  EXPECT_EQ(streamed("\x80"), "\ufffd|");
  EXPECT_EQ(streamed("\xe2\x82"
                     "a"),
            "||\ufffda|");
  EXPECT_EQ(streamed("\xe2\x28"), "|\ufffd(|");
  EXPECT_EQ(streamed("\xe2\x82"), "||\ufffd");
  EXPECT_EQ(streamed("\xed\xa0"), "|\ufffd\ufffd|");
}

}  // namespace
}  // namespace greta::test::utf8_test
