#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/damage.hpp"
#include "db/sqlite/config_forms.hpp"
#include "db/sqlite/guard.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

// Rows of the table winners, as in rows.hpp.

/// Replaces the session's winner of the same circumstances.
void put_winner(SQLite::Database& database, std::int64_t session, const Winner& winner);

/// Writes results of other databases: their devices must be there. Replaces those of the same
/// circumstances.
class ResultWriter {
 public:
  /// `packed`: configurations are written in the form that ships.
  ResultWriter(SQLite::Database& database, bool packed);
  void write(const StoredWinner& result);

 private:
  SQLite::Database& database_;
  SealedInsert insert_;
  ConfigForms forms_;
  bool packed_;
};

// Of one problem and device the latest comes first.
const std::string& select_winner();           ///< those of `:fingerprint`, `:key` and `:cold`
const std::string& select_all_winners();      ///< by problem and device
const std::string& select_problem_winners();  ///< those of `:key` and `:cold` on any device

/// Writes a result's regret; throws Error where there is no such result, or a damaged one.
void put_regret(SQLite::Database& database, const StoredWinner& result);

/// A condition on trials t and sessions s, and its values: trials of `:config`, for a result's
/// problem at full size, in its circumstances.
std::string select_trials_like(const std::string& columns, const std::string& order);
void bind_trials_like(SQLite::Statement& select, const StoredWinner& result, const Config& config);

/// Reads rows of these.
class WinnerReader {
 public:
  explicit WinnerReader(SQLite::Database& database) : forms_(database) {}
  /// Leaves out what can't be read.
  std::vector<StoredWinner> read_all(SQLite::Statement& rows);
  /// What was left out: a form that is damaged, or a value of no meaning.
  const std::vector<DamagedRow>& unreadable() const { return unreadable_; }

 private:
  StoredWinner read(SQLite::Statement& row);
  std::vector<DamagedRow> unreadable_;
  ConfigForms forms_;
  std::map<std::int64_t, DeviceInfo> devices_;
};

/// The latest one, as TunedDb::find_winner.
std::optional<StoredWinner> read_winner(SQLite::Database& database,
                                        const std::string& device_fingerprint,
                                        const std::string& problem_key, bool cold);

/// The first of each problem, device and cold/warm; they stand together.
std::vector<StoredWinner> latest(std::vector<StoredWinner> winners);

}  // namespace greta::db
