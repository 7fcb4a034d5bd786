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

// Functions for rows of the table winners. See rows.hpp for their conventions.

/// Returns the id of a set of circumstances, and adds it if it is new.
std::int64_t put_circumstances(SQLite::Database& database, const std::string& fingerprint,
                               const Provenance& provenance);
/// Returns a result with the session's own circumstances and without a winner and a regret. Throws
/// Error if there is no such session.
StoredWinner origin_of(SQLite::Database& database, std::int64_t session);

/// Writes the session's winner. Replaces one of the same circumstances. Returns false, and writes
/// nothing, if the answer is pinned to another configuration.
bool put_winner(SQLite::Database& database, std::int64_t session, const Winner& winner);

/// Writes results, whose devices must be in the database. Replaces those of the same circumstances,
/// but leaves out other configurations of pinned problems.
class ResultWriter {
 public:
  /// With `packed`, configurations are written in the form of shipped databases.
  ResultWriter(SQLite::Database& database, bool packed);
  /// Returns whether the result was written.
  bool write(const StoredWinner& result);

 private:
  SQLite::Database& database_;
  SealedInsert insert_;
  ConfigForms forms_;
  bool packed_;
};

// For one problem and device, the latest winner comes first; one with a date in the future comes
// last.
const std::string& select_winner();           ///< winners of `:fingerprint`, `:key` and `:cold`
const std::string& select_all_winners();      ///< all winners, by problem and device
const std::string& select_problem_winners();  ///< winners of `:key` and `:cold` on any device

/// Writes a result's regret. Throws Error if the result does not exist or is damaged.
void put_regret(SQLite::Database& database, const StoredWinner& result);

/// Returns a query of trials t and sessions s, and binds its values. It selects trials of `:config`
/// for a result's problem at full size in its circumstances.
std::string select_trials_like(const std::string& columns, const std::string& order);
void bind_trials_like(SQLite::Statement& select, const StoredWinner& result, const Config& config);

/// Reads rows of these queries.
class WinnerReader {
 public:
  explicit WinnerReader(SQLite::Database& database) : forms_(database) {}
  /// Reads all rows except those that can't be read. Among the results of one question, those of
  /// the driver and compiler of `present`, if there is one, come first, then those of the device as
  /// last seen; otherwise, the order of the rows stays.
  std::vector<StoredWinner> read_all(SQLite::Statement& rows, const DeviceInfo* present = nullptr);
  /// Returns the rows that could not be read: a form is damaged, or a value has no meaning.
  const std::vector<DamagedRow>& unreadable() const { return unreadable_; }

 private:
  StoredWinner read(SQLite::Statement& row);
  std::vector<DamagedRow> unreadable_;
  ConfigForms forms_;
  std::map<std::int64_t, DeviceInfo> devices_;
};

/// Returns the winners of a problem on a device for all circumstances, in the order of
/// WinnerReader::read_all().
std::vector<StoredWinner> read_winners(SQLite::Database& database,
                                       const std::string& device_fingerprint,
                                       const std::string& problem_key, bool cold,
                                       const DeviceInfo* present = nullptr);

/// Returns the first winner of each problem, device and cold/warm. Winners of the same group must
/// be adjacent.
std::vector<StoredWinner> latest(std::vector<StoredWinner> winners);

}  // namespace greta::db
