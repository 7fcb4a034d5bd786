// Protects: threads that write one database object at the same time lose nothing, and each can
// confirm what is stored.

#include <gtest/gtest.h>

#include <thread>

#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::threads_test {
namespace {

TEST(Threads, ThatShareADatabaseLoseNothing) {
  constexpr int threads = 4, sessions = 5, trials = 20;
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", TunedDb::Mode::read_write);
  const auto write = [&] {
    for (int i = 0; i < sessions; ++i) {
      const auto session = db.begin_session(sample_session());
      for (int trial = 0; trial < trials; ++trial) db.add_trial(session, sample_trial("keys"));
      db.set_winner(session, sample_winner());
      db.end_session(session, "done");
      EXPECT_NO_THROW(db.confirm());
      EXPECT_EQ(db.trials(session).size(), static_cast<std::size_t>(trials));
    }
  };
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(write);
  for (auto& thread : running) thread.join();
  EXPECT_TRUE(db.check().empty());
  EXPECT_EQ(db.counts().sessions, threads * sessions);
  EXPECT_EQ(db.counts().trials, threads * sessions * trials);
}

}  // namespace
}  // namespace greta::test::threads_test
