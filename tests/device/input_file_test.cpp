// Protects: one function reads files, refuses what is none, and reads no more than it was told.

#include "runtime/device/input_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/temporary_folder.hpp"

namespace greta {
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
  EXPECT_EQ(refused.failure().status, Status::io);
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

}  // namespace
}  // namespace greta
