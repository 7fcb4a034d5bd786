// Protects: foreign text is shown without any character that a terminal interprets.

#include "runtime/device/text/printable.hpp"

#include <gtest/gtest.h>

#include "tests/layers.hpp"

namespace greta::test::printable_test {
namespace {

TEST(Printable, TextStaysAsItIs) {
  for (const char* text :
       {"", "plain", "Größe 3 µs ×", "\u20ac \U0001f600", "a\n\tb\n", "\u00a0"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ControlCharactersBecomeEscapes) {
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("\a\b\r\v\f\x7f"), "\\x07\\x08\\x0d\\x0b\\x0c\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b1m")
      << "CSI as one character of C1";
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f\xc2\xa0"), "\\xc2\\x80\\xc2\\x9f\u00a0");
}

TEST(Printable, BytesThatAreNoUtf8BecomeEscapes) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\x9b"
                      "1m"),
            "\\x9b1m")
      << "CSI of 8 bits";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xc2\n"), "\\xc2\n") << "the newline is not swallowed";
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "ESC in an overlong form";
}

TEST(Printable, OneLineIsOne) {
  EXPECT_EQ(one_line("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(one_line("\x1b"), "\\x1b");
}

TEST(Printable, JsonEscapesWhatJsonLeaves) {
  EXPECT_EQ(printable_json("{\"a\": \"\\u001b\"}\n"), "{\"a\": \"\\u001b\"}\n");
  EXPECT_EQ(printable_json("\"\x7f\xc2\x9b\xc2\xa0\""), "\"\\u007f\\u009b\u00a0\"");
}

// For arbitrary bytes the output is UTF-8 without control characters.
TEST(Printable, AllPairsOfBytes) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string text{static_cast<char>(a), static_cast<char>(b)};
      const std::string shown = one_line(text);
      EXPECT_EQ(one_line(shown), shown) << a << " " << b;
      for (const char c : shown) EXPECT_TRUE((c & 0x80) != 0 || (c >= 0x20 && c != 0x7f));
    }
  }
}

}  // namespace
}  // namespace greta::test::printable_test
