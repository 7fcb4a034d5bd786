// Protects: JSON is built as the library's own parser builds it, and keys that an object has twice,
// nesting beyond a limit and numbers beyond those of double are refused.

#include "runtime/device/text/json_builder.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/layers.hpp"

namespace greta::test::json_builder_test {
namespace {

using nlohmann::json;

TEST(JsonBuilder, ValuesAreThoseOfTheLibrary) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "0.5", "\"\\u00e9\"", "[]", "{}",
        R"([1, [2, {"a": [], "b": {"a": null}}, "c"], {"": false}, -1e300])"}) {
    JsonBuilder builder;
    ASSERT_TRUE(json::sax_parse(text, &builder)) << text;
    EXPECT_EQ(builder.value(), json::parse(text)) << text;
    EXPECT_EQ(builder.value().type(), json::parse(text).type()) << text;
  }
  const json value = {{"a", json::binary({1, 2, 3})}, {"b", {1, -2, 0.5}}};
  JsonBuilder builder;
  ASSERT_TRUE(json::sax_parse(json::to_msgpack(value), &builder, json::input_format_t::msgpack));
  EXPECT_EQ(builder.value(), value);
}

TEST(JsonBuilder, RepeatedKeysAreRefused) {
  JsonBuilder apart;
  EXPECT_TRUE(json::sax_parse(R"([{"a": {"a": 1}}, {"a": 2}])", &apart));
  EXPECT_FALSE(apart.repeated_key());
  JsonBuilder twice;
  EXPECT_FALSE(json::sax_parse(R"([{"a": {"b": [], "c": 1, "b": 2}}])", &twice));
  EXPECT_EQ(twice.repeated_key(), "b");
}

TEST(JsonBuilder, DeepNestingIsRefused) {
  for (const std::string text : {"[[[1]], [[2]]]", R"({"a": [{"b": 1}]})"}) {
    JsonBuilder enough(3), fewer(2);
    EXPECT_TRUE(json::sax_parse(text, &enough)) << text;
    EXPECT_FALSE(json::sax_parse(text, &fewer)) << text;
  }
}

TEST(JsonBuilder, FaultsHaveTheirPlace) {
  JsonBuilder broken, large;
  EXPECT_FALSE(json::sax_parse("[1, }", &broken));
  EXPECT_EQ(broken.failed_at(), 5U);
  EXPECT_FALSE(broken.number_too_large());
  EXPECT_FALSE(json::sax_parse("[1e999]", &large));
  EXPECT_TRUE(large.number_too_large());
}

}  // namespace
}  // namespace greta::test::json_builder_test
