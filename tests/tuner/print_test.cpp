// Protects: the tools never print control characters of their input, and no format argument begins
// a line.

#include "tuner/report/print.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/layers.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::test::print_test {
namespace {

/// Returns what a function writes to a stream.
template <typename Write>
std::string written(const Write& write) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  write(stream);
  std::fclose(stream);
  std::string result(text, size);
  std::free(text);
  return result;
}

TEST(Print, ArgumentsStayOnTheirLine) {
  const std::string name = "a\nb\x1b[m\xff";
  EXPECT_EQ(written([&](std::FILE* out) { print(out, "{}: {:>3}, {}\n", name, 7, "x\ty"); }),
            "a\\x0ab\\x1b[m\\xff:   7, x\\x09y\n");
  EXPECT_EQ(written([&](std::FILE* out) { print(out, "{:.2}|", std::string_view("xyz")); }), "xy|");
}

TEST(Print, TextsKeepTheirLines) {
  EXPECT_EQ(written([](std::FILE* out) { print_text(out, "a\n\tb\r\n"); }), "a\n\tb\\x0d\n");
}

TEST(Print, RowsAndTablesStayInTheirLines) {
  EXPECT_EQ(format_row("na\nme", "val\nue \x1b"), "  na\\x0ame     val\\x0aue \\x1b\n");
  Table table({{"title"}});
  table.add({"a\nFORGED\x1b"});
  EXPECT_EQ(table.text(), "title\na\\x0aFORGED\\x1b\n");
}

TEST(Print, JsonOfAnyBytes) {
  testing::internal::CaptureStdout();
  print_json(nlohmann::json{{"a\x7f", "\xff\xc2\x9b\x1b"}}, -1);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"a\\u007f\":\"\ufffd\\u009b\\u001b\"}\n");
}

TEST(Print, StreamsOfTheLibraryGoTheSameWay) {
  std::ostringstream library;
  const std::string text = written([&](std::FILE* out) {
    const PrintedStream printed(library, out);
    library << "\x1b[31m" << 5 << std::endl << "rest";
  });
  EXPECT_EQ(text, "\\x1b[31m5\nrest");
  EXPECT_EQ(library.str(), "");
}

}  // namespace
}  // namespace greta::test::print_test
