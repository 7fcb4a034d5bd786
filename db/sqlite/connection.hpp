#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "db/sqlite/migrations.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// What TunedDb leaves at the defaults, and tests replace.
struct ConnectionOptions {
  std::vector<Migration> migrations = db::migrations();
  std::chrono::milliseconds busy_timeout{10'000};  ///< how long SQLite waits for one lock
  std::chrono::milliseconds give_up{30'000};       ///< how long a transaction tries to begin
  std::string vfs;                                 ///< SQLite's file system layer; empty: default
};

/// An open GRETA database: identity, schema, transactions, and errors as one line with the file's
/// name. Knows nothing of the tables' meaning.
class Connection {
 public:
  /// As TunedDb::open.
  Connection(const std::filesystem::path& file, TunedDb::Mode mode, ConnectionOptions options = {});

  const std::filesystem::path& file() const { return file_; }
  /// Whether the file says of itself that it is only read.
  bool shipped() const { return shipped_; }

  using Work = std::function<void(SQLite::Database&)>;
  /// Runs `work` in one transaction that sees one state of the database.
  void read(const Work& work) const;
  /// Runs `work` in one transaction that is committed on return and rolled back on a throw.
  void write(const Work& work);
  /// Writes a copy that no process will write again, compact, to a file that must not exist.
  void write_shipped(const std::filesystem::path& file);
  /// Rewrites the file without the room of removed rows.
  void compact();

 private:
  [[noreturn]] void fail(std::string_view cause, Status status = Status::io) const;
  [[noreturn]] void fail(const SQLite::Exception& error) const;

  int newest_schema() const { return options_.migrations.back().version; }
  void open_for_writing();
  void open_for_reading();
  void open_handle(const std::string& name, int flags);
  SQLite::Database open_plainly() const;
  void prepare_folder() const;
  bool check_file() const;
  void peek() const;
  bool check_identity(const SQLite::Database& database) const;
  void migrate();
  void transact(const Work& work);
  void choose_journal();
  void check_in_place() const;
  void retry_while_busy(const std::function<void()>& action) const;

  std::filesystem::path file_;
  TunedDb::Mode mode_;
  ConnectionOptions options_;
  bool shipped_ = false;
  std::unique_ptr<SQLite::Database> database_;
};

}  // namespace greta::db
