// Protects: basic types of the device layer: hashes, results, statuses, kernel keys, timestamps and
// the log sink.

#include <gtest/gtest.h>

#include <set>

#include "runtime/device/clock.hpp"
#include "runtime/device/compile/listing.hpp"
#include "runtime/device/kernel_source.hpp"
#include "runtime/device/result.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/text/hash.hpp"
#include "tests/layers.hpp"

namespace greta::test::core_test {

namespace {

TEST(Hash, KeepsFieldsApart) {
  EXPECT_EQ(Hash().hex(), "6c62272e07bb014262b821756295c58d") << "the offset basis";
  EXPECT_NE(Hash().add("ab").add("c").hex(), Hash().add("a").add("bc").hex());
  EXPECT_NE(Hash().add("").hex(), Hash().hex());
  EXPECT_NE(Hash().add("a").low(), Hash().add("b").low());
}

TEST(Listing, MatrixInstructionsAreCounted) {
  EXPECT_EQ(
      count_matrix_instructions("\tv_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]\n"
                                "  v_wmma_f32_16x16x16_bf16 v[0:7], v[8:15], v[16:23], v[0:7]\n"
                                "v_mfma_f32_32x32x8f16 v[0:15], v[0:1], v[2:3], v[0:15]"),
      3U);
  EXPECT_EQ(count_matrix_instructions("/*0040*/  @P0 HMMA.16816.F32 R4, R8, R12, R4 ;\n"
                                      "/*0050*/      FFMA R4, R8, R12, R4 ;\n"),
            1U);
  EXPECT_EQ(count_matrix_instructions("v_fma_f32 v0, v1, v2, v3\n.Lv_mfma_: s_nop 0\n"), 0U);
  EXPECT_EQ(count_matrix_instructions(""), 0U);
}

TEST(Result, HoldsAValueOrAFailure) {
  const Result<int> good = 3;
  EXPECT_TRUE(good);
  EXPECT_EQ(*good, 3);
  const Result<int> bad = Failure{Status::timeout, "too late", "log"};
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.failure().log, "log");
  try {
    static_cast<void>(bad.value());
    FAIL() << "reading the value of a failure must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::timeout);
    EXPECT_STREQ(error.what(), "too late");
  }
  const Result<void> nothing;
  EXPECT_TRUE(nothing);
  EXPECT_THROW(Result<void>(Failure{Status::io, "no", {}}).value(), Error);
}

TEST(Result, EveryStatusHasAName) {
  std::set<std::string_view> names;
  for (int status = 0; status <= static_cast<int>(Status::io); ++status) {
    names.insert(to_string(static_cast<Status>(status)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Status::io) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(KernelSource, EverythingThatReachesTheBinaryIsInTheKey) {
  KernelSource source;
  source.language = Language::glsl;
  source.text = "text";
  std::set<std::string> keys{source.content_key("compiler", "architecture")};
  const auto add = [&](auto change) {
    KernelSource other = source;
    change(other);
    keys.insert(other.content_key("compiler", "architecture"));
  };
  add([](KernelSource& other) { other.language = Language::hip; });
  add([](KernelSource& other) { other.text = "Text"; });
  add([](KernelSource& other) { other.entry = "start"; });
  add([](KernelSource& other) { other.options = {"-DA"}; });
  add([](KernelSource& other) { other.options = {"-DB"}; });
  add([](KernelSource& other) { other.options = {"-D", "A"}; });
  add([](KernelSource& other) { other.required_subgroup_size = 8; });
  add([](KernelSource& other) { other.argument_bytes = 8; });
  keys.insert(source.content_key("compiler 2", "architecture"));
  keys.insert(source.content_key("compiler", "architecture 2"));
  EXPECT_EQ(keys.size(), 11U);
  source.name = "a name is for people only";
  EXPECT_TRUE(keys.contains(source.content_key("compiler", "architecture")));
}

TEST(Clock, TicksWrapAround) {
  EXPECT_EQ(ticks_between(5, 12, 64), 7U);
  EXPECT_EQ(ticks_between(UINT64_MAX - 1, 3, 64), 5U);
  EXPECT_EQ(ticks_between((1ULL << 36) - 2, 4, 36), 6U);
  EXPECT_EQ(ticks_between(0xffff'fff0, 0x10, 32), 0x20U);
}

TEST(Log, LinesGoToTheSinkWhileThereIsOne) {
  std::vector<std::string> lines;
  log(LogLevel::warning, "nobody {}", "listens");
  set_log_sink([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::info);
    lines.emplace_back(line);
  });
  log(LogLevel::info, "{} and {}", 1, "two");
  set_log_sink({});
  log(LogLevel::info, "nobody listens");
  EXPECT_EQ(lines, std::vector<std::string>{"1 and two"});
}

}  // namespace

}  // namespace greta::test::core_test
