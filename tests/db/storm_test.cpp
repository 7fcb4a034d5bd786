// Protects: many processes write one database while others read it and some are killed at any time,
// and no committed trial is lost, duplicated or changed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::storm_test {
namespace {

using Mode = TunedDb::Mode;
using Clock = std::chrono::steady_clock;

/// Memory shared by all processes.
struct Shared {
  static constexpr int most_writers = 4096;
  std::atomic<bool> stop{false};
  std::atomic<int> reads{0};
  std::atomic<int> committed[most_writers]{};  // number of trials reported as stored, per writer
};

class Storm {
 public:
  explicit Storm(const std::filesystem::path& file) : file_(file) {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
    shared_ = new (memory) Shared;
  }
  ~Storm() { munmap(shared_, sizeof(Shared)); }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  void run(std::size_t writers, std::size_t readers, std::chrono::milliseconds time) {
    std::vector<pid_t> writing, reading;
    for (std::size_t i = 0; i < writers; ++i) writing.push_back(start_writer());
    for (std::size_t i = 0; i < readers; ++i) reading.push_back(start_reader());
    std::mt19937_64 random(19);
    const auto end = Clock::now() + time;
    while ((Clock::now() < end || killed_ <= 3) && started_ < Shared::most_writers) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 60));
      // On a machine that is busy, kills at this pace would leave no writer the time to begin.
      wait_until([&] { return committed() > killed_; });
      pid_t& victim = writing[random() % writing.size()];
      kill(victim, SIGKILL);
      int status = 0;
      ASSERT_EQ(waitpid(victim, &status, 0), victim);
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "a writer failed";
      ++killed_;
      victim = start_writer();
    }
    wait_until([&] { return committed() > started_ && shared_->reads > 3; });
    shared_->stop = true;
    for (const pid_t child : writing) EXPECT_TRUE(succeeded(child));
    for (const pid_t child : reading) EXPECT_TRUE(succeeded(child));
  }

  /// Expects all reported trials of every writer exactly once, and from a killed writer possibly
  /// also the one in flight.
  void expect_nothing_lost() const {
    const auto db = TunedDb::open(file_, Mode::read_only);
    EXPECT_TRUE(db.check().empty());
    std::vector<std::vector<int>> stored(static_cast<std::size_t>(started_));
    for (const auto& session : db.sessions()) {
      for (const auto& trial : db.trials(session.id)) {
        stored.at(std::stoul(trial.message)).push_back(std::stoi(trial.content_keys));
      }
    }
    int total = 0;
    for (std::size_t writer = 0; writer < stored.size(); ++writer) {
      const auto& numbers = stored[writer];
      const int told = shared_->committed[writer];
      total += told;
      EXPECT_GE(static_cast<int>(numbers.size()), told) << "writer " << writer;
      EXPECT_LE(static_cast<int>(numbers.size()), told + 1) << "writer " << writer;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_EQ(numbers[i], static_cast<int>(i)) << "writer " << writer;
      }
    }
    EXPECT_GT(total, started_);
    EXPECT_GT(killed_, 3);
    EXPECT_GT(shared_->reads.load(), 3);
    std::printf("%d trials of %d writers, %d killed, %d reads\n", total, started_, killed_,
                shared_->reads.load());
  }

 private:
  /// The number of trials that are reported as stored.
  int committed() const {
    return std::accumulate(shared_->committed, shared_->committed + started_, 0);
  }
  /// Returns within a minute even if it is not.
  static void wait_until(const std::function<bool()>& reached) {
    const auto end = Clock::now() + std::chrono::minutes(1);
    while (!reached() && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  pid_t start_writer() {
    const int writer = started_++;
    return start_child([&] {
      auto db = TunedDb::open(file_, Mode::read_write);
      int number = 0;
      while (!shared_->stop) {
        const auto session = db.begin_session(sample_session());
        for (int i = 0; i < 20 && !shared_->stop; ++i) {
          auto trial = sample_trial(std::to_string(number));
          trial.message = std::to_string(writer);
          db.add_trial(session, trial);
          shared_->committed[writer] = ++number;
        }
        db.set_winner(session, sample_winner());
        db.end_session(session, "done");
      }
    });
  }
  pid_t start_reader() {
    return start_child([&] {
      std::int64_t before = 0;
      while (!shared_->stop) {
        if (!std::filesystem::exists(file_) || std::filesystem::file_size(file_) == 0) continue;
        std::optional<TunedDb> db;
        try {
          db = TunedDb::open(file_, Mode::read_only);
        } catch (const Error&) {
          continue;  // it is being created
        }
        const auto now = db->counts().trials;
        EXPECT_GE(now, before) << "trials vanished";
        before = now;
        db->winners();
        const bool thorough = ++shared_->reads % 8 == 0;
        EXPECT_TRUE(!thorough || db->check().empty());
      }
    });
  }

  std::filesystem::path file_;
  Shared* shared_ = nullptr;
  int started_ = 0;
  int killed_ = 0;
};

TEST(Storm, WritersReadersAndKills) {
  const TemporaryFolder folder;
  Storm storm(folder / "t.db");
  storm.run(6, 2, std::chrono::milliseconds(1500));
  storm.expect_nothing_lost();
}

TEST(StormLong, ThirtyTwoProcessesForHalfAMinute) {
  const TemporaryFolder folder;
  Storm storm(folder / "t.db");
  storm.run(32, 4, std::chrono::seconds(30));
  storm.expect_nothing_lost();
}

}  // namespace
}  // namespace greta::test::storm_test
