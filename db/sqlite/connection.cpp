#include "db/sqlite/connection.hpp"

#include <SQLiteCpp/Backup.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "db/sqlite/checksums.hpp"
#include "db/sqlite/guard.hpp"
#include "runtime/device/result.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/text/printable.hpp"

namespace greta::db {
namespace {

namespace fs = std::filesystem;

/// "GRET", the application id in the header of a GRETA database.
constexpr int application_id = 0x47524554;
/// "GRES", the application id of a shipped database.
constexpr int shipped_application_id = 0x47524553;
/// Rows of older schemas are trusted when this step adds their checksums. After it, a row without a
/// checksum is damaged.
constexpr int first_schema_with_checksums = 2;

int get_int(const SQLite::Database& database, const char* query) {
  SQLite::Statement statement(database, query);
  statement.executeStep();
  return statement.getColumn(0).getInt();
}

fs::path beside(const fs::path& file, std::string_view suffix) {
  return file.string() + std::string(suffix);
}

bool has_content(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return !error && size > 0;
}

/// Returns the system's reason why this process may not access a path, or an empty string if it
/// may.
std::string access_problem(const fs::path& path, int how) {
  return ::faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0 ? "" : std::strerror(errno);
}

/// Returns a URI that opens the file as it is: SQLite takes no lock, recovers nothing and creates
/// no file beside it.
std::string immutable_uri(const fs::path& file) {
  std::string uri = "file:";
  for (const char c : file.string()) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '/') {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return uri + "?immutable=1";
}

bool is_busy(const SQLite::Exception& error) {
  return error.getErrorCode() == SQLITE_BUSY || error.getErrorCode() == SQLITE_PROTOCOL;
}

}  // namespace

Connection::Connection(const fs::path& file, TunedDb::Mode mode, ConnectionOptions options)
    : mode_(mode), options_(std::move(options)) {
  if (file.empty()) throw Error("the database needs a file name");
  // SQLite puts its log beside the real file, and gives names like ":memory:" a special meaning.
  std::error_code error_code;
  file_ = fs::weakly_canonical(file, error_code);
  if (error_code || file_.is_relative()) file_ = fs::absolute(file);
  try {
    mode == TunedDb::Mode::read_write ? open_for_writing() : open_for_reading();
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

void Connection::fail(std::string_view cause, Status status) const {
  throw Error(Failure{status, one_line(fmt::format("{}: {}", file_.string(), cause)), {}});
}

void Connection::fail(const SQLite::Exception& error) const {
  switch (error.getErrorCode()) {
    case SQLITE_NOTADB:
      fail("not a GRETA database", Status::invalid_argument);
    case SQLITE_CORRUPT:
      fail(fmt::format("corrupt ({})", error.what()));
    case SQLITE_FULL:
      fail("the disk is full");
    case SQLITE_BUSY:
    case SQLITE_PROTOCOL:
      fail("locked by another process");
    default:
      break;
  }
  switch (error.getExtendedErrorCode()) {
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
      fail(fmt::format("a write failed ({})", error.what()));
    default:
      fail(error.what());
  }
}

void Connection::open_handle(const std::string& name, int flags) {
  database_ = std::make_unique<SQLite::Database>(
      name, flags, static_cast<int>(options_.busy_timeout.count()), options_.vfs);
  database_->exec("PRAGMA cell_size_check = ON");
  add_checksum_function(*database_);
}

void Connection::open_for_writing() {
  prepare_folder();
  if (check_file()) {
    // SQLite would open a write-protected file anyway, and fail at the first write.
    const auto problem = access_problem(file_, R_OK | W_OK);
    if (!problem.empty()) fail(problem);
    peek();
  }
  open_handle(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  if (get_int(*database_, "PRAGMA page_count") != 0) check_identity(*database_);
  migrate();
  schema_ = newest_schema();
  choose_journal();
  guard_tables(*database_, true);
  database_->exec("PRAGMA foreign_keys = ON");
}

void Connection::open_for_reading() {
  if (!check_file())
    fail(fs::exists(file_) ? "empty, not yet a database" : "there is no such file");
  const auto problem = access_problem(file_, R_OK);
  if (!problem.empty()) fail(problem);
  peek();
  // A writable handle recovers the changes of a killed writer. Unlike a read-only one, it leaves no
  // files behind. query_only prevents it from changing anything.
  const bool writable =
      access_problem(file_, W_OK).empty() && access_problem(file_.parent_path(), W_OK).empty();
  try {
    open_handle(file_.string(), writable ? SQLite::OPEN_READWRITE : SQLite::OPEN_READONLY);
    shipped_ = check_identity(*database_);
  } catch (const SQLite::Exception& error) {
    const int code = error.getErrorCode();
    if (writable || (code != SQLITE_READONLY && code != SQLITE_CANTOPEN)) throw;
    // SQLite can't create its -shm file in this folder. Without a log or journal, the file alone is
    // complete, and no other process can change it.
    if (fs::exists(beside(file_, "-wal")) || fs::exists(beside(file_, "-journal"))) {
      fail("its log can't be read in a folder that can't be written; copy both to one that can");
    }
    open_handle(immutable_uri(file_), SQLite::OPEN_READONLY | SQLite::OPEN_URI);
    shipped_ = check_identity(*database_);
  }
  schema_ = get_int(*database_, "PRAGMA user_version");
  if (schema_ < newest_schema()) migrate_copy();
  guard_tables(*database_, false);
  database_->exec("PRAGMA query_only = ON");
}

void Connection::prepare_folder() const {
  const auto folder = file_.parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && !fs::is_directory(folder, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  const auto problem = error ? error.message() : access_problem(folder, W_OK | X_OK);
  if (!problem.empty()) fail(fmt::format("the folder can't be written: {}", problem));
}

/// Whether there is a file with content. Throws for anything that can't become a database.
bool Connection::check_file() const {
  // The log is checked first: a file that another process is creating has content before its log
  // has.
  const bool log = has_content(beside(file_, "-wal"));
  std::error_code error;
  const auto status = fs::status(file_, error);
  if (status.type() == fs::file_type::none) fail(error.message());
  if (fs::exists(status) && !fs::is_regular_file(status)) fail("not a file");
  if (has_content(file_)) return true;
  // SQLite would delete the log, which may be the only copy of a user's results.
  if (log) {
    fail("missing or empty, but its log (-wal) has content: put the file back or remove the log");
  }
  return false;
}

/// Detects a foreign file or a newer schema before anything modifies the file.
void Connection::peek() const {
  try {
    check_identity(
        SQLite::Database(immutable_uri(file_), SQLite::OPEN_READONLY | SQLite::OPEN_URI));
  } catch (const SQLite::Exception& error) {
    // Other errors may be caused by a concurrent writer. The regular open, with locks, handles
    // those.
    if (error.getErrorCode() == SQLITE_NOTADB) throw;
  }
}

/// Returns whether this is a shipped database.
bool Connection::check_identity(const SQLite::Database& database) const {
  const int id = get_int(database, "PRAGMA application_id");
  const bool is_shipped = id == shipped_application_id;
  if (id != application_id && !is_shipped) {
    fail("not a GRETA database", Status::invalid_argument);
  }
  if (is_shipped && mode_ == TunedDb::Mode::read_write) {
    fail("a shipped database, which is never written; merge it into one of your own");
  }
  const int schema = get_int(database, "PRAGMA user_version");
  if (schema < 1) fail(fmt::format("corrupt (schema {})", schema));
  if (schema > newest_schema()) {
    fail(fmt::format("written by a newer GRETA (schema {}; this one knows {})", schema,
                     newest_schema()));
  }
  get_int(database, "SELECT count(*) FROM sqlite_schema");  // detects a damaged schema
  return is_shipped;
}

/// Runs the missing migrations, each in one transaction. A new database is created by the same
/// steps in SQLite's rollback mode, so that its identity is never only in a log.
void Connection::migrate() {
  for (const auto& step : options_.migrations) {
    if (get_int(*database_, "PRAGMA user_version") >= step.version) continue;
    transact([&](SQLite::Database& database) {
      const int schema = get_int(database, "PRAGMA user_version");
      if (schema >= step.version) return;  // another process was faster
      if (schema == 0 && get_int(database, "SELECT count(*) FROM sqlite_schema") != 0) {
        fail("not a GRETA database", Status::invalid_argument);
      }
      database.exec(std::string(step.sql));
      if (step.version == first_schema_with_checksums) seal_for_the_first_time(database);
      if (step.then != nullptr) step.then(database);
      database.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                application_id, step.version));
      SQLite::Statement broken(database, "PRAGMA foreign_key_check");
      if (broken.executeStep()) {
        fail(fmt::format("the step to schema {} breaks a reference of table {}", step.version,
                         broken.getColumn(0).getString()));
      }
    });
  }
}

/// Continues with a copy in memory that has the newest schema: a reader never changes the file.
void Connection::migrate_copy() {
  const auto file = std::move(database_);
  open_handle(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  if (SQLite::Backup(*database_, *file).executeStep() != SQLITE_DONE) {
    fail("it can't be copied while another process writes it");
  }
  if (!shipped_) return migrate();
  const auto incorrect = remove_correct_lines_of_manifest(*database_);
  migrate();
  write_manifest(*database_, incorrect);
  database_->exec(fmt::format("DROP INDEX IF EXISTS {}", unshipped_index));
}

/// Selects a write-ahead log where the file system can share memory. Elsewhere it selects SQLite's
/// rollback journal with full syncing, which gives the same guarantees but is slower, and readers
/// wait for writers.
void Connection::choose_journal() {
  std::string mode;
  retry_while_busy([&] { mode = database_->execAndGet("PRAGMA journal_mode = WAL").getString(); });
  database_->exec(mode == "wal" ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
}

/// SQLite would continue to write to a deleted file, whose content is lost. A shipped file may be
/// replaced by the next version of its application; the open one stays complete.
void Connection::check_in_place() const {
  if (shipped_) return;
  int moved = 0;
  sqlite3_file_control(database_->getHandle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved != 0) fail("deleted or replaced while it was open");
}

/// SQLite's busy timeout does not cover recovery, nor a change of the journal mode.
void Connection::retry_while_busy(const std::function<void()>& action) const {
  const auto started = std::chrono::steady_clock::now();
  bool announced = false;
  while (true) {
    try {
      return action();
    } catch (const SQLite::Exception& error) {
      if (!is_busy(error) || std::chrono::steady_clock::now() > started + options_.give_up) throw;
    }
    if (!announced && std::chrono::steady_clock::now() > started + options_.busy_timeout) {
      log(LogLevel::warning, "{}: waiting while another process writes it", file_.string());
      announced = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Connection::read(const Work& work) const {
  const std::lock_guard lock(*mutex_);
  check_in_place();
  try {
    const SQLite::Transaction transaction(*database_);  // ended by its destructor
    work(*database_);
  } catch (const SQLite::Exception& error) {
    fail(error);
  } catch (const Error& error) {
    fail(error.what());
  }
}

void Connection::write(const Work& work) {
  const std::lock_guard lock(*mutex_);
  check_in_place();
  try {
    transact(work);
  } catch (const SQLite::Exception& error) {
    fail(error);
  } catch (const Error& error) {
    fail(error.what());
  }
}

/// Opens a handle without the guards, whose views interfere with VACUUM, and whose temporary tables
/// are in memory.
SQLite::Database Connection::open_plainly() const {
  return SQLite::Database(file_.string(), SQLite::OPEN_READWRITE,
                          static_cast<int>(options_.busy_timeout.count()), options_.vfs);
}

void Connection::write_shipped(const fs::path& file) {
  const std::lock_guard lock(*mutex_);
  check_in_place();
  try {
    SQLite::Database plain = open_plainly();
    SQLite::Statement copy(plain, "VACUUM INTO ?");
    copy.bind(1, file.string());
    copy.exec();
    SQLite::Database shipped(file.string(), SQLite::OPEN_READWRITE);
    shipped.exec(fmt::format("PRAGMA application_id = {}", shipped_application_id));
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

void Connection::compact() {
  const std::lock_guard lock(*mutex_);
  check_in_place();
  try {
    SQLite::Database plain = open_plainly();
    retry_while_busy([&] { plain.exec("VACUUM"); });
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

void Connection::transact(const Work& work) {
  retry_while_busy([&] { database_->exec("BEGIN IMMEDIATE"); });
  try {
    work(*database_);
    database_->exec("COMMIT");
  } catch (...) {
    database_->tryExec("ROLLBACK");  // fails if SQLite has already done so
    throw;
  }
}

}  // namespace greta::db
