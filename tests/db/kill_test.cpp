// Protects: a process that is killed at any time loses at most the trial in flight.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::kill_test {
namespace {

using Mode = TunedDb::Mode;

/// A child process that adds trials and reports the number of each after its commit.
class Victim {
 public:
  Victim(const std::filesystem::path& file, int first) {
    if (pipe(pipe_) != 0) throw std::runtime_error("pipe failed");
    child_ = start_child([&] {
      auto db = TunedDb::open(file, Mode::read_write);
      const auto session = db.begin_session(sample_session());
      for (int i = first;; ++i) {
        db.add_trial(session, sample_trial(std::to_string(i)));
        if (write(pipe_[1], &i, sizeof i) != sizeof i) throw std::runtime_error("write failed");
      }
    });
    close(pipe_[1]);
  }
  ~Victim() { close(pipe_[0]); }

  /// Waits until the first trial is committed.
  void await_first() {
    if (read(pipe_[0], &last_, sizeof last_) != sizeof last_) throw std::runtime_error("it died");
  }
  /// Kills the child. Returns the number of the last reported trial, or -1.
  int kill_after(std::chrono::microseconds delay) {
    std::this_thread::sleep_for(delay);
    kill(child_, SIGKILL);
    int status = 0;
    waitpid(child_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself";
    while (read(pipe_[0], &last_, sizeof last_) == sizeof last_) {
    }
    return last_;
  }

 private:
  int pipe_[2] = {};
  pid_t child_ = 0;
  int last_ = -1;
};

TEST(Kill, LosesAtMostTheTrialInFlight) {
  const TemporaryFolder folder;
  std::mt19937_64 random(11);
  int next = 0;
  for (int round = 0; round < 30; ++round) {
    Victim victim(folder / "t.db", next);
    victim.await_first();
    const int last = victim.kill_after(std::chrono::microseconds(random() % 20'000));

    const auto db = TunedDb::open(folder / "t.db", Mode::read_write);
    EXPECT_TRUE(db.check().empty());
    const auto stored = static_cast<int>(db.counts().trials);
    EXPECT_GE(stored, last + 1) << "a committed trial is gone";
    EXPECT_LE(stored, last + 2);
    next = stored;
  }
  const auto db = TunedDb::open(folder / "t.db", Mode::read_only);
  std::set<std::string> seen;
  for (std::int64_t session = 1; session <= db.counts().sessions; ++session) {
    for (const auto& trial : db.trials(session)) seen.insert(trial.content_keys);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(next));
}

TEST(Kill, WhileItCreatesTheDatabase) {
  const TemporaryFolder folder;
  std::mt19937_64 random(13);
  int early = 0;
  for (int round = 0; round < 25; ++round) {
    const auto file = folder / (std::to_string(round) + ".db");
    Victim victim(file, 0);
    const int last = victim.kill_after(std::chrono::microseconds(random() % 40'000));
    early += last < 0 ? 1 : 0;
    auto db = TunedDb::open(file, Mode::read_write);
    EXPECT_TRUE(db.check().empty());
    EXPECT_GE(db.counts().trials, last + 1);
    db.add_trial(db.begin_session(sample_session()), sample_trial("after"));
  }
  EXPECT_GT(early, 0) << "none was killed before its first trial";
}

TEST(Kill, OneOfTwoWritersLeavesTheOtherRunning) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  const auto session = db.begin_session(sample_session());
  std::mt19937_64 random(17);
  int added = 0, theirs = 0;
  for (int round = 0; round < 10; ++round) {
    Victim victim(folder / "t.db", 0);
    victim.await_first();  // it is writing now
    for (int i = 0; i < 20; ++i, ++added) db.add_trial(session, sample_trial("mine"));
    theirs += victim.kill_after(std::chrono::microseconds(random() % 20'000)) + 1;
    for (int i = 0; i < 20; ++i, ++added) db.add_trial(session, sample_trial("mine"));
  }
  EXPECT_EQ(db.trials(session).size(), static_cast<std::size_t>(added));
  EXPECT_GE(db.counts().trials, added + theirs);
  EXPECT_TRUE(db.check().empty());
}

}  // namespace
}  // namespace greta::test::kill_test
