// Protects: a file is replaced as a whole. Readers never see a part of it, a failure leaves the old
// content, and neither leaves anything beside it.
#include "runtime/device/system/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/system/input_file.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::output_file_test {
namespace {

namespace fs = std::filesystem;

class OutputFile : public testing::Test {
 protected:
  std::string content(const fs::path& file) const {
    return device::read_file(file, 1 << 24).value();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      all.push_back(entry.path().filename());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(OutputFile, IsWrittenAndReplacedByBytes) {
  const fs::path file = folder_.path() / "one";
  const std::string bytes("a\0b\n", 4);
  device::replace_file(file, "a longer text").value();
  device::replace_file(file, bytes).value();
  EXPECT_EQ(content(file), bytes);
  device::replace_file(file, "").value();
  EXPECT_EQ(content(file), "");
  EXPECT_EQ(names(), std::vector<std::string>{"one"});
  const mode_t mask = umask(0);
  umask(mask);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask);
}

TEST_F(OutputFile, AFailureLeavesWhatWasThere) {
  const fs::path folder = folder_.path() / "folder";
  fs::create_directory(folder);
  const auto over_a_folder = device::replace_file(folder, "text");
  ASSERT_FALSE(over_a_folder);
  EXPECT_EQ(over_a_folder.failure().status, Status::io);
  EXPECT_EQ(over_a_folder.failure().message,
            folder.string() + ": can't be written: Is a directory");
  const fs::path absent = folder_.path() / "absent" / "one";
  const auto into_nothing = device::replace_file(absent, "text");
  ASSERT_FALSE(into_nothing);
  EXPECT_EQ(into_nothing.failure().message,
            absent.string() + ": can't be written: No such file or directory");
  EXPECT_EQ(names(), std::vector<std::string>{"folder"});
}

TEST_F(OutputFile, ReadersSeeOneOfTheContents) {
  const fs::path file = folder_.path() / "one";
  const std::vector<std::string> contents = {std::string(1 << 20, 'a'), std::string(3 << 20, 'b')};
  device::replace_file(file, contents[0]).value();
  std::atomic<int> writing{2};
  std::vector<std::thread> writers;
  for (const std::string& text : contents) {
    writers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) device::replace_file(file, text).value();
      --writing;
    });
  }
  while (writing > 0) {
    const std::string read = content(file);
    EXPECT_TRUE(read == contents[0] || read == contents[1]) << read.size() << " bytes";
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(names(), std::vector<std::string>{"one"});
}

}  // namespace
}  // namespace greta::test::output_file_test
