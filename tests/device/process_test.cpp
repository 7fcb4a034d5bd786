// Protects: how a program ended is reported as it was, and a stop ends it within moments.
#include "runtime/device/system/process.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace greta::device {
namespace {

using std::chrono::seconds;

ProcessOutcome run_shell(const std::string& script, std::chrono::nanoseconds deadline,
                         const std::atomic<bool>* stop = nullptr) {
  return run_process({"sh", "-c", script}, "input\n", deadline, stop).value();
}

TEST(Process, OutputsAndExitCodeAreKept) {
  const auto ended = run_shell("cat; echo twice >&2; echo error >&2; exit 3", seconds(60));
  EXPECT_EQ(ended.output, "input\n");
  EXPECT_EQ(ended.last_error_line(), "error");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.how_it_ended(seconds(60)), "exited with 3");
  EXPECT_EQ(ended.failure(), Status::crash);
}

TEST(Process, TheDeadlineKillsItWithWhatItStarted) {
  const auto ended = run_shell("sleep 1000 & echo $!; wait", std::chrono::milliseconds(200));
  EXPECT_TRUE(ended.timed_out);
  EXPECT_EQ(ended.failure(), Status::timeout);
  EXPECT_EQ(ended.how_it_ended(std::chrono::milliseconds(200)), "was killed after 0.2 s");
  const std::string started = ended.output.substr(0, ended.output.find('\n'));
  const auto runs = run_shell("ps -o stat= -p " + started + " | grep -v Z", seconds(60));
  EXPECT_EQ(runs.output, "");
}

TEST(Process, AStopEndsIt) {
  for (const char* script : {"sleep 1000", "exec >&- 2>&-; sleep 1000"}) {
    std::atomic<bool> stop{false};
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      stop = true;
    });
    const auto ended = run_shell(script, seconds(500), &stop);
    later.join();
    EXPECT_TRUE(ended.stopped) << script;
    EXPECT_FALSE(ended.timed_out) << script;
    EXPECT_EQ(ended.failure(), Status::interrupted) << script;
    EXPECT_EQ(ended.how_it_ended(seconds(500)), "was interrupted") << script;
  }
}

TEST(Process, AReaderSeesOutputAsItComes) {
  const std::atomic<bool> never{false};
  std::vector<std::string> seen;
  int turns = 0;
  const auto outcome = run_process({"sh", "-c", "echo a; sleep 0.5; echo b; printf c"}, "",
                                   std::chrono::seconds(30), &never, [&](std::string& output) {
                                     ++turns;
                                     if (output.find('\n') == std::string::npos) return;
                                     seen.push_back(output.substr(0, 2));
                                     output.erase(0, 2);
                                   });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(seen, (std::vector<std::string>{"a\n", "b\n"}));
  EXPECT_EQ(outcome->output, "c");  // what the reader left
  EXPECT_GE(turns, 4);              // it is also called while nothing comes
}

}  // namespace
}  // namespace greta::device
