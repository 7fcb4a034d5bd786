// Protects: a driver call that never returns ends its process, and nothing else does.

#include "runtime/device/system/stall_watch.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/layers.hpp"

namespace greta::test::stall_watch_test {
namespace {

constexpr int stalled = 7;

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Returns the exit code of a process that runs `body`. Calls may take `patience_s`, calls with a
/// deadline 0.2 s beyond it.
template <typename Body>
int exit_code_of(const Body& body, double patience_s = 0.4) {
  const pid_t child = fork();
  if (child == 0) {
    watch_for_stalls({.patience_s = patience_s, .margin_s = 0.2, .end = [] { _exit(stalled); }});
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StallWatch, ACallThatDoesNotReturnEndsTheProcess) {
  EXPECT_EQ(exit_code_of([] {
              const StallWatch call;
              sleep_s(30);
            }),
            stalled);
  EXPECT_EQ(exit_code_of([] {
              const StallWatch launch(0.1);
              sleep_s(30);
            }),
            stalled);
  EXPECT_EQ(exit_code_of([] {
              std::thread([] {
                const StallWatch call;
                sleep_s(30);
              }).join();
            }),
            stalled)
      << "in any thread";
}

TEST(StallWatch, NothingElseDoes) {
  EXPECT_EQ(exit_code_of([] { sleep_s(0.8); }), 0) << "outside of a scope";
  EXPECT_EQ(exit_code_of(
                [] {
                  for (int i = 0; i < 100; ++i) {
                    const StallWatch call;
                    sleep_s(0.05);
                  }
                },
                4),
            0)
      << "calls that return, of which only all together take longer";
  EXPECT_EQ(exit_code_of([] {
              const StallWatch compiling(StallWatch::unlimited);
              const StallWatch call;
              sleep_s(0.8);
            }),
            0)
      << "a call within a scope that may take longer";
}

// The time of a nested compilation does not count as that of the call, but the time after it does.
TEST(StallWatch, TheInnerScopeCounts) {
  const auto call_that_compiles = [](double afterwards_s) {
    return exit_code_of(
        [=] {
          const StallWatch call;
          {
            const StallWatch compiling(StallWatch::unlimited);
            sleep_s(3);
          }
          sleep_s(afterwards_s);
        },
        2);
  };
  EXPECT_EQ(call_that_compiles(0), 0);
  EXPECT_EQ(call_that_compiles(30), stalled);
}

// A process that does not watch is never ended.
TEST(StallWatch, IsNothingWhereNobodyWatches) {
  const StallWatch call;
  const StallWatch launch(0.01);
  sleep_s(0.3);
}

}  // namespace
}  // namespace greta::test::stall_watch_test
