#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "db/sqlite/migrations.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// Options that TunedDb leaves at the defaults, and tests replace.
struct ConnectionOptions {
  std::vector<Migration> migrations = db::migrations();
  std::chrono::milliseconds busy_timeout{2'000};  ///< SQLite's maximum wait for one lock
  std::chrono::milliseconds give_up{150'000};     ///< maximum time to begin a transaction
  std::string vfs;                                ///< SQLite's file system layer; empty: default
};

/// An open GRETA database. It handles identity, schema and transactions, and reports errors as one
/// line with the file's name. It is independent of the tables' meaning. Calls from several threads
/// run one after the other; `work` must not call the connection.
class Connection {
 public:
  /// Opens a database as TunedDb::open() does.
  Connection(const std::filesystem::path& file, TunedDb::Mode mode, ConnectionOptions options = {});

  const std::filesystem::path& file() const { return file_; }
  /// Whether the file is marked as a shipped, read-only database.
  bool shipped() const { return shipped_; }
  /// Returns the schema of the file, which is older than newest_schema() for a shipped database
  /// that was migrated in memory.
  int schema() const { return schema_; }

  using Work = std::function<void(SQLite::Database&)>;
  /// Runs `work` in one transaction, which sees one state of the database.
  void read(const Work& work) const;
  /// Runs `work` in one transaction, which is committed on return and rolled back on an exception.
  void write(const Work& work);
  /// Writes a compact copy that no process will modify to a file that must not exist.
  void write_shipped(const std::filesystem::path& file);
  /// Rewrites the file without the space of removed rows.
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
  void migrate_copy();
  void transact(const Work& work);
  void choose_journal();
  void check_in_place() const;
  void retry_while_busy(const std::function<void()>& action) const;

  std::filesystem::path file_;
  TunedDb::Mode mode_;
  ConnectionOptions options_;
  bool shipped_ = false;
  int schema_ = 0;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // of the transaction
  std::unique_ptr<SQLite::Database> database_;
};

}  // namespace greta::db
