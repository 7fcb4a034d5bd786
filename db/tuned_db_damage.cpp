#include <fmt/format.h>

#include "db/sqlite/checksums.hpp"
#include "db/sqlite/guard.hpp"
#include "db/sqlite/rows.hpp"
#include "db/sqlite/tuned_db_impl.hpp"
#include "db/sqlite/winner_rows.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {
namespace {

/// Returns all damaged rows, and results that can't be read.
std::vector<DamagedRow> find_damage(SQLite::Database& database, const std::string& left_out = {}) {
  auto rows = damaged_rows(database, left_out);
  WinnerReader reader(database);
  SQLite::Statement select(database, select_all_winners());
  reader.read_all(select);
  rows.insert(rows.end(), reader.unreadable().begin(), reader.unreadable().end());
  return rows;
}

/// Returns a finding of SQLite's own check without the line "*** in database main ***" before it.
std::string without_heading(const std::string& finding) {
  const auto end = finding.rfind("*** in database ", 0) == 0 ? finding.find('\n') : finding.npos;
  return end == finding.npos ? finding : finding.substr(end + 1);
}

}  // namespace

std::vector<DamagedRow> TunedDb::damaged() const {
  std::vector<DamagedRow> rows;
  impl_->connection.read([&](SQLite::Database& database) { rows = find_damage(database); });
  return rows;
}

std::vector<DamagedRow> TunedDb::damaged_but_trials() const {
  std::vector<DamagedRow> rows;
  impl_->connection.read(
      [&](SQLite::Database& database) { rows = find_damage(database, "trials"); });
  return rows;
}

std::vector<DamagedRow> TunedDb::damaged_trials(const std::string& problem_key) const {
  std::vector<DamagedRow> rows;
  impl_->connection.read(
      [&](SQLite::Database& database) { rows = db::damaged_trials(database, problem_key); });
  return rows;
}

std::vector<DamagedRow> TunedDb::discarded() const {
  std::vector<DamagedRow> rows;
  impl_->connection.read([&](SQLite::Database& database) { rows = discarded_rows(database); });
  return rows;
}

void TunedDb::confirm() const {
  std::string structure;
  std::vector<std::string> missing;
  Connection(file(), Mode::read_only).read([&](SQLite::Database& database) {
    WrittenRows written;
    impl_->connection.read([&](SQLite::Database& own) {
      // The reader's state of the file begins here, while no other thread can write.
      static_cast<void>(database.execAndGet("SELECT count(*) FROM main.sqlite_schema"));
      written = written_rows(own);
    });
    // A damaged row that violates a constraint must not hide the state of the others.
    database.exec("PRAGMA ignore_check_constraints = ON");
    structure = database.execAndGet("PRAGMA main.quick_check(1)").getString();
    missing = missing_rows(database, written);
  });
  if (structure != "ok") {
    throw Error(fmt::format("{}: corrupt ({})", file().string(), without_heading(structure)));
  }
  if (missing.empty()) return;
  throw Error(
      fmt::format("{}: overwritten while it was open: {} of the rows that were stored are not "
                  "there, the first {}",
                  file().string(), missing.size(), missing.front()));
}

std::vector<std::string> TunedDb::check() const {
  std::vector<std::string> problems;
  impl_->connection.read([&](SQLite::Database& database) {
    try {
      SQLite::Statement integrity(database, "PRAGMA integrity_check");
      while (integrity.executeStep()) {
        const auto line = without_heading(integrity.getColumn(0).getString());
        if (line != "ok") problems.push_back(line);
      }
      SQLite::Statement references(database, "PRAGMA foreign_key_check");
      while (references.executeStep()) {
        problems.push_back(fmt::format("row {} of {} refers to a row of {} that is not there",
                                       references.getColumn(1).getInt64(),
                                       references.getColumn(0).getString(),
                                       references.getColumn(2).getString()));
      }
      const auto add = [&](const std::vector<std::string>& lines) {
        problems.insert(problems.end(), lines.begin(), lines.end());
      };
      add(check_schema(database, shipped()));
      add(check_manifest(database));
      add(damage_lines(find_damage(database)));
    } catch (const SQLite::Exception& error) {
      // Severe damage can make SQLite stop; this is a finding, too.
      problems.emplace_back(error.what());
    }
  });
  return problems;
}

}  // namespace greta::db
