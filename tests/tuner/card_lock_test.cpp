// Protects: two tuners never measure on one card at once unless asked to, and a dead one never
// blocks the next.

#include "tuner/evaluate/card_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/temporary_folder.hpp"

namespace greta {
namespace {

const std::atomic<bool> never{false};
const std::atomic<bool> at_once{true};

void nobody(const std::string& holder) {
  FAIL() << "waited for " << holder;
}

TEST(CardLock, TheSecondWaitsAndIsToldWhom) {
  const test::TemporaryFolder folder;
  std::vector<std::string> told;
  std::atomic<bool> waiting{false};
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
      EXPECT_TRUE(lock.held());
    });
    while (!waiting) std::this_thread::yield();
  }
  second.join();
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

TEST(CardLock, DevicesOfOneCardAndOfTheCpuShareAKey) {
  DeviceInfo hip;
  hip.backend = "hip";
  hip.kind = DeviceKind::discrete_gpu;
  hip.pci_address = "0000:01:00.0";
  DeviceInfo vulkan = hip;
  vulkan.backend = "vulkan";
  EXPECT_EQ(CardLock::key(hip), CardLock::key(vulkan));
  DeviceInfo host, lavapipe;
  host.backend = "hip-host";
  lavapipe.backend = "vulkan";
  EXPECT_EQ(CardLock::key(host), CardLock::key(lavapipe));
  EXPECT_NE(CardLock::key(host), CardLock::key(hip));
}

}  // namespace
}  // namespace greta
