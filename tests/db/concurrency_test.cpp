// Protects: concurrent processes that create, write and read one database lose nothing.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "db/sqlite/connection.hpp"
#include "db/sqlite/rows.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::concurrency_test {
namespace {

using Mode = TunedDb::Mode;

/// Several processes create, open and fill one file at the same time.
void write_at_once(const std::filesystem::path& file, int processes, int trials) {
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    children.push_back(start_child([&] {
      auto db = TunedDb::open(file, Mode::read_write);
      const auto session = db.begin_session(sample_session());
      for (int i = 0; i < trials; ++i) {
        db.add_trial(session, sample_trial(std::to_string(process) + "/" + std::to_string(i)));
      }
      db.set_winner(session, sample_winner());
      db.end_session(session, "done");
    }));
  }
  for (const auto child : children) EXPECT_TRUE(succeeded(child));

  const auto db = TunedDb::open(file, Mode::read_only);
  EXPECT_TRUE(db.check().empty());
  EXPECT_EQ(db.counts().sessions, processes);
  EXPECT_EQ(db.counts().trials, processes * trials);
  EXPECT_EQ(db.counts().devices, 1);
  EXPECT_EQ(db.counts().winners, 1);
  std::set<std::string> seen;
  for (int session = 1; session <= processes; ++session) {
    for (const auto& trial : db.trials(session)) seen.insert(trial.content_keys);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(processes * trials));
}

TEST(Concurrency, TwoProcessesLoseNothing) {
  const TemporaryFolder folder;
  write_at_once(folder / "t.db", 2, 300);
}

TEST(Concurrency, EightProcessesLoseNothing) {
  const TemporaryFolder folder;
  write_at_once(folder / "t.db", 8, 60);
}

TEST(Concurrency, CreatingTogetherMakesOneDatabase) {
  const TemporaryFolder folder;
  for (int round = 0; round < 10; ++round) {
    write_at_once(folder / (std::to_string(round) + ".db"), 4, 1);
  }
}

TEST(Concurrency, ReaderSeesWhatAWriterCommits) {
  const TemporaryFolder folder;
  auto writer = TunedDb::open(folder / "t.db", Mode::read_write);
  const auto reader = TunedDb::open(folder / "t.db", Mode::read_only);
  const auto session = writer.begin_session(sample_session());
  for (int i = 1; i <= 3; ++i) {
    writer.add_trial(session, sample_trial("x"));
    EXPECT_EQ(reader.counts().trials, i);
  }
}

TEST(Concurrency, SecondHandleOfAProcessKeepsTheLocksOfTheFirst) {
  // POSIX releases a process's locks on a file when the process closes any descriptor of it.
  // Without its locks, another process would believe that it is the last user and remove the log.
  const TemporaryFolder folder;
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const auto other = start_child([&] {
    char byte = 0;
    EXPECT_EQ(read(go[0], &byte, 1), 1);
    TunedDb::open(folder / "t.db", Mode::read_write).counts();
  });
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  const auto session = db.begin_session(sample_session());
  TunedDb::open(folder / "t.db", Mode::read_write);
  TunedDb::open(folder / "t.db", Mode::read_only);
  EXPECT_EQ(write(go[1], "x", 1), 1);
  EXPECT_TRUE(succeeded(other));
  EXPECT_TRUE(std::filesystem::exists(folder / "t.db-wal"));
  db.add_trial(session, sample_trial("x"));
  EXPECT_EQ(TunedDb::open(folder / "t.db", Mode::read_only).counts().trials, 1);
}

TEST(Concurrency, LockedDatabaseIsAnErrorAfterTheDeadline) {
  const TemporaryFolder folder;
  Connection holder(folder / "t.db", Mode::read_write);
  ConnectionOptions impatient;
  impatient.busy_timeout = impatient.give_up = std::chrono::milliseconds(20);
  Connection waiting(folder / "t.db", Mode::read_write, impatient);
  holder.write([&](SQLite::Database&) {
    EXPECT_EQ(error_of([&] { waiting.write([](SQLite::Database&) {}); }),
              (folder / "t.db").string() + ": locked by another process");
  });
  waiting.write([](SQLite::Database& database) { put_problem(database, sample_problem()); });
}

TEST(Concurrency, WorksWithoutWriteAheadLog) {
  // This VFS of SQLite has no shared memory, like some network file systems.
  const TemporaryFolder folder;
  ConnectionOptions options;
  options.vfs = "unix-dotfile";
  std::vector<pid_t> children;
  for (int process = 0; process < 2; ++process) {
    children.push_back(start_child([&] {
      Connection connection(folder / "t.db", Mode::read_write, options);
      for (int i = 0; i < 10; ++i) {
        connection.write(
            [](SQLite::Database& database) { insert_session(database, sample_session()); });
      }
    }));
  }
  for (const auto child : children) EXPECT_TRUE(succeeded(child));
  const Connection connection(folder / "t.db", Mode::read_write, options);
  connection.read([](SQLite::Database& database) {
    EXPECT_EQ(database.execAndGet("PRAGMA journal_mode").getString(), "delete");
    EXPECT_EQ(database.execAndGet("PRAGMA synchronous").getInt(), 2);
    EXPECT_EQ(database.execAndGet("SELECT count(*) FROM sessions").getInt(), 20);
  });
}

}  // namespace
}  // namespace greta::test::concurrency_test
