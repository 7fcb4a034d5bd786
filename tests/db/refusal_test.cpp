// Protects: files that are not usable databases are rejected with one line and left unchanged, and
// read-only access and a full disk lose nothing.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <random>
#include <stdexcept>

#include "db/sqlite/connection.hpp"
#include "db/sqlite/rows.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::refusal_test {
namespace {

namespace fs = std::filesystem;
using Mode = TunedDb::Mode;

void fill(const fs::path& file) {
  auto db = TunedDb::open(file, Mode::read_write);
  const auto session = db.begin_session(sample_session());
  db.add_trial(session, sample_trial("x"));
  db.set_winner(session, sample_winner());
}

void protect(const fs::path& path, bool writable = false) {
  const bool folder = fs::is_directory(path);
  fs::permissions(path, fs::perms(writable ? (folder ? 0777 : 0666) : (folder ? 0555 : 0444)));
}

/// Expects that both modes reject the file for this cause, leave it unchanged and create no other
/// file.
void expect_refused(const TemporaryFolder& folder, const fs::path& file, const std::string& cause) {
  const auto content = read_file(file);
  const auto listing = folder.listing();
  for (const auto mode : {Mode::read_write, Mode::read_only}) {
    EXPECT_EQ(open_error(file, mode), file.string() + ": " + cause);
  }
  EXPECT_EQ(read_file(file), content);
  EXPECT_EQ(folder.listing(), listing);
}

TEST(Foreign, FilesThatAreNotDatabases) {
  const TemporaryFolder folder;
  std::string random_bytes(10'000, '\0');
  std::mt19937 random(1);
  for (auto& byte : random_bytes) byte = static_cast<char>(random());
  int number = 0;
  for (const auto& content :
       {random_bytes, std::string("x"), std::string("m,n,k\n1,2,3\n"), std::string(5000, '\n'),
        std::string(4096, '\0'), std::string("SQLite format 3")}) {
    const auto file = folder / (std::to_string(++number) + ".db");
    write_file(file, content);
    expect_refused(folder, file, "not a GRETA database");
  }
}

TEST(Foreign, DatabasesOfOtherPrograms) {
  const TemporaryFolder folder;
  const auto create = [&](const std::string& name, const char* sql) {
    SQLite::Database((folder / name).string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec(sql);
    return folder / name;
  };
  expect_refused(folder, create("a.db", "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)"),
                 "not a GRETA database");
  expect_refused(folder, create("b.db", "VACUUM"), "not a GRETA database");
  expect_refused(folder, create("c.db", "PRAGMA user_version = 1"), "not a GRETA database");
  expect_refused(folder, create("d.db", "PRAGMA journal_mode = WAL; CREATE TABLE mine (x)"),
                 "not a GRETA database");
}

// Like all foreign text: C1 control characters and invalid UTF-8 are escaped as well.
TEST(Foreign, MessagesAreOnePrintableLine) {
  const TemporaryFolder folder;
  write_file(folder / "a\x1b[31m\xc2\x9b\n\xff.db", "x");
  EXPECT_EQ(
      error_of([&] { TunedDb::open(folder / "a\x1b[31m\xc2\x9b\n\xff.db", Mode::read_only); }),
      (folder / "a\\x1b[31m\\xc2\\x9b\\x0a\\xff.db").string() + ": not a GRETA database");
}

TEST(Foreign, LogOfAnotherProgramStaysWhereItIs) {
  const TemporaryFolder folder;
  SQLite::Database other((folder / "t.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  other.exec("PRAGMA journal_mode = WAL; CREATE TABLE mine (x); INSERT INTO mine VALUES (1)");
  const auto log = read_file(folder / "t.db-wal");
  EXPECT_FALSE(log.empty());
  expect_refused(folder, folder / "t.db", "not a GRETA database");
  EXPECT_EQ(read_file(folder / "t.db-wal"), log);
}

TEST(Foreign, ThingsThatAreNotFiles) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "folder");
  expect_refused(folder, folder / "folder", "not a file");
  EXPECT_EQ(open_error("/dev/null"), "/dev/null: not a file");
  EXPECT_EQ(error_of([] { TunedDb::open("", Mode::read_write); }),
            "the database needs a file name");
  write_file(folder / "file", "text");
  EXPECT_NE(open_error(folder / "file" / "t.db").find("ot a directory"), std::string::npos);
  EXPECT_EQ(read_file(folder / "file"), "text");
}

TEST(Foreign, NamesHaveNoMeaning) {
  const TemporaryFolder folder;
  for (const char* name : {":memory:", "file:x?mode=memory", "a b%20#?&.db", "ünï.db"}) {
    fill(folder / name);
    EXPECT_EQ(TunedDb::open(folder / name, Mode::read_only).counts().trials, 1) << name;
    EXPECT_TRUE(fs::exists(folder / name));
  }
}

TEST(Foreign, EmptyFileIsANewDatabase) {
  const TemporaryFolder folder;
  write_file(folder / "t.db", "");
  EXPECT_EQ(open_error(folder / "t.db", Mode::read_only),
            (folder / "t.db").string() + ": empty, not yet a database");
  fill(folder / "t.db");
  EXPECT_EQ(TunedDb::open(folder / "t.db", Mode::read_only).counts().trials, 1);
}

TEST(Foreign, LogWithoutItsFileIsNotThrownAway) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  db.begin_session(sample_session());
  const auto log = read_file(folder / "t.db-wal");
  write_file(folder / "u.db-wal", log);
  EXPECT_NE(open_error(folder / "u.db").find("its log (-wal) has content"), std::string::npos);
  EXPECT_EQ(read_file(folder / "u.db-wal"), log);
}

TEST(Foreign, MissingFileIsNotCreatedForReading) {
  const TemporaryFolder folder;
  EXPECT_EQ(open_error(folder / "t.db", Mode::read_only),
            (folder / "t.db").string() + ": there is no such file");
  EXPECT_EQ(folder.listing(), "");
}

TEST(Moved, DeletedFileIsNoticed) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  const auto session = db.begin_session(sample_session());
  fs::remove(folder / "t.db");
  const auto expected = (folder / "t.db").string() + ": deleted or replaced while it was open";
  EXPECT_EQ(error_of([&] { db.add_trial(session, sample_trial("x")); }), expected);
  EXPECT_EQ(error_of([&] { db.counts(); }), expected);
}

TEST(Moved, ReplacedFileIsNotWritten) {
  const TemporaryFolder folder;
  fill(folder / "other.db");
  const auto content = read_file(folder / "other.db");
  {
    auto db = TunedDb::open(folder / "t.db", Mode::read_write);
    const auto session = db.begin_session(sample_session());
    fs::rename(folder / "other.db", folder / "t.db");
    error_of([&] { db.add_trial(session, sample_trial("x")); });
  }
  EXPECT_EQ(read_file(folder / "t.db"), content);
}

TEST(ReadOnly, FolderIsRefusedForWriting) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  protect(folder / "t.db", true);
  protect(folder.path());
  const auto before = read_file(folder / "t.db");
  EXPECT_TRUE(succeeded(start_child([&] {
    become_nobody();
    for (const char* name : {"t.db", "new.db", "new/folder/new.db"}) {
      EXPECT_EQ(open_error(folder / name),
                (folder / name).string() + ": the folder can't be written: Permission denied");
    }
  })));
  EXPECT_EQ(read_file(folder / "t.db"), before);
  EXPECT_EQ(folder.listing(), "t.db");
}

TEST(ReadOnly, FileIsRefusedForWriting) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  protect(folder / "t.db");
  protect(folder.path(), true);
  EXPECT_TRUE(succeeded(start_child([&] {
    become_nobody();
    EXPECT_EQ(open_error(folder / "t.db"), (folder / "t.db").string() + ": Permission denied");
  })));
}

TEST(ReadOnly, UnreadableFileIsRefused) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  fs::permissions(folder / "t.db", fs::perms::none);
  EXPECT_TRUE(succeeded(start_child([&] {
    become_nobody();
    EXPECT_EQ(open_error(folder / "t.db", Mode::read_only),
              (folder / "t.db").string() + ": Permission denied");
  })));
}

TEST(ReadOnly, CopyInAReadOnlyFolderCanBeRead) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  protect(folder / "t.db");
  protect(folder.path());
  EXPECT_TRUE(succeeded(start_child([&] {
    become_nobody();
    auto db = TunedDb::open(folder / "t.db", Mode::read_only);
    EXPECT_EQ(db.counts().trials, 1);
    EXPECT_EQ(db.winners().size(), 1U);
    EXPECT_TRUE(db.check().empty());
    EXPECT_NE(error_of([&] { db.begin_session(sample_session()); }).find("readonly"),
              std::string::npos);
  })));
  EXPECT_EQ(folder.listing(), "t.db");
}

/// Copies the files that a killed writer leaves, with five trials that are only in the log.
void leave_log(const TemporaryFolder& folder, const fs::path& copy,
               std::initializer_list<std::string> suffixes) {
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  const auto session = db.begin_session(sample_session());
  for (int i = 0; i < 5; ++i) db.add_trial(session, sample_trial("x"));
  fs::create_directory(copy);
  for (const auto& suffix : suffixes) {
    fs::copy((folder / "t.db").string() + suffix, (copy / "t.db").string() + suffix);
    protect((copy / "t.db").string() + suffix);
  }
  protect(copy);
}

TEST(ReadOnly, LogInAReadOnlyFolderIsRead) {
  const TemporaryFolder folder;
  leave_log(folder, folder / "copy", {"", "-wal", "-shm"});
  EXPECT_TRUE(succeeded(start_child([&] {
    become_nobody();
    EXPECT_EQ(TunedDb::open(folder / "copy/t.db", Mode::read_only).counts().trials, 5);
  })));
  protect(folder / "copy", true);
}

TEST(ReadOnly, LogThatCannotBeReadIsNotIgnored) {
  const TemporaryFolder folder;
  leave_log(folder, folder / "copy", {"", "-wal"});
  EXPECT_TRUE(succeeded(start_child([&] {
    become_nobody();
    EXPECT_EQ(open_error(folder / "copy/t.db", Mode::read_only),
              (folder / "copy/t.db").string() +
                  ": its log can't be read in a folder that can't be "
                  "written; copy both to one that can");
  })));
  protect(folder / "copy", true);
}

TEST(ReadOnly, ReadingChangesAndLeavesNothing) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  const auto before = read_file(folder / "t.db");
  {
    auto db = TunedDb::open(folder / "t.db", Mode::read_only);
    EXPECT_EQ(db.counts().trials, 1);
    EXPECT_NE(error_of([&] { db.add_trial(1, sample_trial("x")); }).find("readonly"),
              std::string::npos);
  }
  EXPECT_EQ(read_file(folder / "t.db"), before);
  EXPECT_EQ(folder.listing(), "t.db");
}

/// Limits the size of every file of this process to `bytes`, like a full disk. For child processes.
void limit_files(std::uintmax_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("setrlimit failed");
}

TEST(FullDisk, KeepsWhatWasCommitted) {
  const TemporaryFolder folder;
  const auto file = folder / "t.db";
  fill(file);
  EXPECT_TRUE(succeeded(start_child([&] {
    auto db = TunedDb::open(file, Mode::read_write);
    const auto session = db.begin_session(sample_session());
    limit_files(400'000);
    auto trial = sample_trial("x");
    trial.log.assign(3000, 'x');
    int added = 0;
    const auto line = error_of([&] {
      for (; added < 1000; ++added) db.add_trial(session, trial);
    });
    EXPECT_EQ(line, file.string() + ": a write failed (disk I/O error)");
    EXPECT_GT(added, 20);
    // The handle still works if there is space, and nothing of the failed trial is visible.
    EXPECT_EQ(db.trials(session).size(), static_cast<std::size_t>(added));
    write_file(folder / "added", std::to_string(added));
  })));
  auto db = TunedDb::open(file, Mode::read_write);
  EXPECT_TRUE(db.check().empty());
  EXPECT_EQ(db.counts().trials, 1 + std::stoi(read_file(folder / "added")));
  db.add_trial(1, sample_trial("there is room again"));
}

TEST(FullDisk, NewDatabaseIsNotHalfMade) {
  const TemporaryFolder folder;
  const auto file = folder / "t.db";
  for (const std::uintmax_t room : {0, 1000, 4096, 8192, 20'000, 40'000}) {
    EXPECT_TRUE(succeeded(start_child([&] {
      limit_files(room);
      EXPECT_EQ(open_error(file), file.string() + ": a write failed (disk I/O error)");
    }))) << room;
  }
  fill(file);
  EXPECT_TRUE(TunedDb::open(file, Mode::read_only).check().empty());
}

TEST(FullDisk, SaysSo) {
  const TemporaryFolder folder;
  Connection connection(folder / "t.db", Mode::read_write);
  // SQLite reports a database at its page limit exactly like a full disk.
  connection.read([](SQLite::Database& database) { database.exec("PRAGMA max_page_count = 30"); });
  std::int64_t session = 0;
  connection.write(
      [&](SQLite::Database& database) { session = insert_session(database, sample_session()); });
  auto trial = sample_trial("x");
  trial.log.assign(100'000, 'x');
  const auto add = [&] {
    connection.write(
        [&](SQLite::Database& database) { TrialWriter(database).insert(session, trial); });
  };
  EXPECT_EQ(error_of([&] {
              for (int i = 0; i < 10; ++i) add();
            }),
            (folder / "t.db").string() + ": the disk is full");
  trial.log.clear();
  add();
}

}  // namespace
}  // namespace greta::test::refusal_test
