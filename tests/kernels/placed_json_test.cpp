// Protects: every value of a description knows its line, column and path, comments or not, and a
// document that is not JSON is refused with the place of its error.

#include "kernels/described/placed_json.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/layers.hpp"

namespace greta::test::placed_json_test {
namespace {

const char* const document = R"({
  // where it begins
  "name": "add", /* , : { */ "sizes": [1, 2.5, -3,
    {"a//b": null}],
  "on":true,"text":"\"]}\\"
})";

TEST(PlacedJson, ValuesKnowTheirPlaces) {
  const auto read = PlacedJson::parse(document);
  ASSERT_TRUE(read) << read.failure().message;
  const auto place = [](const PlacedJson* value) {
    return value == nullptr ? "nowhere" : value->failure(value->shown()).message;
  };
  EXPECT_EQ(place(read->find("name")), "line 3, column 11, name: \"add\"");
  const PlacedJson* const sizes = read->find("sizes");
  ASSERT_NE(sizes, nullptr);
  ASSERT_NE(sizes->items(), nullptr);
  ASSERT_EQ(sizes->items()->size(), 4U);
  EXPECT_EQ(place(sizes), "line 3, column 39, sizes: an array");
  EXPECT_EQ(place(&sizes->items()->at(0)), "line 3, column 40, sizes[0]: 1");
  EXPECT_EQ(place(&sizes->items()->at(1)), "line 3, column 43, sizes[1]: 2.5");
  EXPECT_EQ(place(&sizes->items()->at(2)), "line 3, column 48, sizes[2]: -3");
  EXPECT_EQ(place(sizes->items()->at(3).find("a//b")), "line 4, column 14, sizes[3].a//b: null");
  EXPECT_EQ(place(read->find("on")), "line 5, column 8, on: true");
  EXPECT_EQ(*read->find("text")->text(), "\"]}\\");
  EXPECT_EQ(place(read->find("text")), "line 5, column 20, text: \"\"]}\\\"");
}

TEST(PlacedJson, RefusesWhatIsNone) {
  const auto message = [](const std::string& text) {
    const auto read = PlacedJson::parse(text);
    return read ? "read" : read.failure().message;
  };
  EXPECT_EQ(message("{\"a\": 1,\n \"a\": 2}"), "line 2, column 2: the key a occurs twice");
  EXPECT_EQ(
      message(std::string(40, '[')), "line 1, column 33, " + [] {
        std::string path;
        for (int i = 0; i < 32; ++i) path += "[0]";
        return path;
      }() + ": a document is at most 32 deep");
  EXPECT_EQ(message("{\"a\": 1,\n\n  x}").substr(0, 18), "line 3, column 3: ");
  EXPECT_EQ(message("").substr(0, 18), "line 1, column 1: ");
  EXPECT_EQ(message("[1] 2").substr(0, 18), "line 1, column 5: ");
  EXPECT_EQ(message("[1e999]").substr(0, 8), "line 1, ");
  EXPECT_EQ(message(std::string(PlacedJson::most_bytes + 1, ' ')), "a document has at most 4 MiB");
}

/// Documents with bytes changed, inserted and left out.
TEST(PlacedJson, SurvivesMutations) {
  std::mt19937_64 random(11);
  constexpr std::string_view bytes = "{}[]\",:/*\\ \n01ae-.\xff";
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = document;
    for (std::size_t changes = 1 + random() % 3; changes > 0 && !text.empty(); --changes) {
      const std::size_t at = random() % text.size();
      const char byte = bytes[random() % bytes.size()];
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 4);
      } else if (random() % 2 == 0) {
        text.insert(at, 1, byte);
      } else {
        text[at] = byte;
      }
    }
    const auto result = PlacedJson::parse(text);
    read += result ? 1 : 0;
    if (!result) {
      EXPECT_EQ(result.failure().message.find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace greta::test::placed_json_test
