// Protects: files are read by one function, which rejects anything else and never exceeds its size
// limit.

#include "runtime/device/system/input_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "runtime/device/system/log.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::input_file_test {
namespace {

TEST(InputFile, ReadsTheWhole) {
  const test::TemporaryFolder folder;
  const std::string content = std::string(200'000, 'x') + std::string("\0\n", 2);
  std::ofstream(folder / "file") << content;
  EXPECT_EQ(read_file(folder / "file", content.size()).value(), content);
  std::ofstream(folder / "empty").close();
  EXPECT_EQ(read_file(folder / "empty", 0).value(), "");
}

TEST(InputFile, RefusesMoreThanItMayHave) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "12345";
  const auto refused = read_file(folder / "file", 4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().status, Status::invalid_argument);
  EXPECT_NE(refused.failure().message.find("more than the 4 bytes"), std::string::npos);
  EXPECT_FALSE(read_file("/proc/self/status", 10)) << "a file that says it has no bytes";
  std::ofstream(folder / "sparse").close();
  std::filesystem::resize_file(folder / "sparse", std::uintmax_t{1} << 40);
  EXPECT_FALSE(read_file(folder / "sparse", 1 << 20));
}

TEST(InputFile, RefusesWhatIsNoRegularFile) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("fifo", folder / "link");
  for (const std::filesystem::path& path :
       {folder / "fifo", folder / "link", folder.path(), std::filesystem::path("/dev/zero"),
        std::filesystem::path("/dev/full"), folder / "none"}) {
    const auto file = InputFile::open(path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.failure().status, Status::io);
    EXPECT_TRUE(file.failure().message.starts_with(path.string() + ": ")) << file.failure().message;
  }
}

TEST(InputFile, ReadsWhatTheSystemSays) {
  EXPECT_NE(read_system_file("/proc/self/status").find("Name:"), std::string::npos);
  EXPECT_EQ(read_system_file("/proc/self/no such file"), "");
}

// /proc/cpuinfo is long on a machine with many cores. Truncation is reported.
TEST(InputFile, WhatTheSystemSaysMayBeLong) {
  const test::TemporaryFolder folder;
  const std::string content(3'000'000, 'x');
  std::ofstream(folder / "long") << content;
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel, std::string_view line) { warnings.emplace_back(line); });
  EXPECT_TRUE(read_system_file(folder / "long") == content);
  EXPECT_TRUE(warnings.empty());
  std::filesystem::resize_file(folder / "long", std::uintmax_t{1} << 40);
  const auto start = read_system_file(folder / "long");
  set_log_sink({});
  EXPECT_EQ(start.size(), std::size_t{64} << 20);
  EXPECT_TRUE(start.starts_with(content));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("only its first 67108864 bytes are read"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::input_file_test
