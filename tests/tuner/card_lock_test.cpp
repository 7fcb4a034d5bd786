// Protects: two tuners never measure on one card at once unless requested, and a dead one never
// blocks the next.

#include "tuner/evaluate/card_lock.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "runtime/device/system/log.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::card_lock_test {
namespace {

const std::atomic<bool> never{false};
const std::atomic<bool> at_once{true};

void nobody(const std::string& holder) {
  FAIL() << "waited for " << holder;
}

TEST(CardLock, TheSecondWaitsAndIsToldWhom) {
  const test::TemporaryFolder folder;
  std::vector<std::string> told;
  std::atomic<bool> waiting{false}, has_it{false};
  std::thread second;
  {
    const CardLock first(folder / "locks", "card", "first tuner", nobody, never);
    EXPECT_TRUE(first.held());
    second = std::thread([&] {
      const CardLock lock(
          folder / "locks", "card", "second",
          [&](const std::string& holder) {
            told.push_back(holder);
            waiting = true;
          },
          never);
      has_it = lock.held();
    });
    while (!waiting && !has_it) std::this_thread::yield();
  }
  second.join();
  EXPECT_TRUE(has_it);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("first tuner"), std::string::npos) << told[0];
  EXPECT_NE(told[0].find(std::to_string(getpid())), std::string::npos) << told[0];
}

TEST(CardLock, AnotherCardIsFree) {
  const test::TemporaryFolder folder;
  const CardLock first(folder.path(), "card", "first", nobody, never);
  EXPECT_TRUE(CardLock(folder.path(), "another", "second", nobody, never).held());
}

TEST(CardLock, AStopEndsTheWait) {
  const test::TemporaryFolder folder;
  const CardLock first(folder.path(), "card", "first", nobody, never);
  EXPECT_FALSE(CardLock(
                   folder.path(), "card", "second", [](const std::string&) {}, at_once)
                   .held());
}

TEST(CardLock, IsReleasedByDeath) {
  const test::TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const CardLock lock(folder.path(), "card", "child", nobody, never);
    static_cast<void>(!write(ready[1], "x", 1));
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(CardLock(
                   folder.path(), "card", "me", [](const std::string&) {}, at_once)
                   .held());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(CardLock(folder.path(), "card", "me", nobody, never).held());
}

TEST(CardLock, WithoutAFolderThereIsNone) {
  EXPECT_FALSE(CardLock("/dev/null/locks", "card", "me", nobody, never).held());
}

/// Counts warnings during its lifetime.
class WarningCount {
 public:
  WarningCount() {
    set_log_sink(
        [this](LogLevel level, std::string_view) { count_ += level == LogLevel::warning; });
  }
  ~WarningCount() { set_log_sink({}); }
  WarningCount(const WarningCount&) = delete;
  WarningCount& operator=(const WarningCount&) = delete;
  int count() const { return count_; }

 private:
  int count_ = 0;
};

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Following a link would overwrite the file that it refers to.
TEST(CardLock, FollowsNoLink) {
  const test::TemporaryFolder folder;
  const WarningCount warnings;
  std::ofstream(folder / "precious") << "results of a week";
  std::filesystem::create_symlink("precious", folder / "card.lock");
  EXPECT_FALSE(CardLock(folder.path(), "card", "me", nobody, never).held());
  std::filesystem::remove(folder / "card.lock");
  std::filesystem::create_hard_link(folder / "precious", folder / "card.lock");
  EXPECT_FALSE(CardLock(folder.path(), "card", "me", nobody, never).held());
  EXPECT_EQ(text_of(folder / "precious"), "results of a week");
  std::filesystem::create_symlink("nothing", folder / "dangling.lock");
  EXPECT_FALSE(CardLock(folder.path(), "dangling", "me", nobody, never).held());
  EXPECT_FALSE(std::filesystem::exists(folder / "nothing"));
  EXPECT_EQ(warnings.count(), 3);
}

// In a folder that others can write to, anybody can replace the file.
TEST(CardLock, IsNotWhereOthersMayWrite) {
  const test::TemporaryFolder folder;
  const WarningCount warnings;
  chmod(folder.path().c_str(), 0777);
  EXPECT_FALSE(CardLock(folder.path(), "card", "me", nobody, never).held());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  chmod(folder.path().c_str(), 0755);
  EXPECT_TRUE(CardLock(folder.path(), "card", "me", nobody, never).held());
  chmod((folder / "card.lock").c_str(), 0666);
  EXPECT_FALSE(CardLock(folder.path(), "card", "me", nobody, never).held());
  EXPECT_EQ(warnings.count(), 2);
}

TEST(CardLock, IsNoSpecialFile) {
  const test::TemporaryFolder folder;
  const WarningCount warnings;
  ASSERT_EQ(mkfifo((folder / "fifo.lock").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder.lock");
  EXPECT_FALSE(CardLock(folder.path(), "fifo", "me", nobody, never).held());
  EXPECT_FALSE(CardLock(folder.path(), "folder", "me", nobody, never).held());
  EXPECT_EQ(warnings.count(), 2);
}

TEST(CardLock, DevicesOfOneCardAndOfTheCpuShareAKey) {
  DeviceInfo hip;
  hip.backend = Api::hip;
  hip.kind = DeviceKind::discrete_gpu;
  hip.card.pci_address = "0000:01:00.0";
  DeviceInfo vulkan = hip;
  vulkan.backend = Api::vulkan;
  EXPECT_EQ(CardLock::key(hip), CardLock::key(vulkan));
  DeviceInfo host, lavapipe;
  host.backend = Api::hip_host;
  lavapipe.backend = Api::vulkan;
  EXPECT_EQ(CardLock::key(host), CardLock::key(lavapipe));
  EXPECT_NE(CardLock::key(host), CardLock::key(hip));
}

}  // namespace
}  // namespace greta::test::card_lock_test
