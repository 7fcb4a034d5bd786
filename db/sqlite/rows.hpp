#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "db/sqlite/guard.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

// Functions that write and read rows. They run inside the caller's transaction and throw Error for
// a stored value that can't be read, and for a session that does not exist.

std::int64_t put_problem(SQLite::Database& database, const Problem& problem);

std::int64_t insert_session(SQLite::Database& database, const SessionRecord& session);
void finish_session(SQLite::Database& database, std::int64_t session, const std::string& outcome);

/// Inserts trials. It keeps its statements, because to prepare them takes longer than to run them.
class TrialWriter {
 public:
  explicit TrialWriter(SQLite::Database& database);
  void insert(std::int64_t session, const Trial& trial);

 private:
  SQLite::Statement problem_of_;
  SQLite::Statement next_id_;
  SealedInsert insert_;
};
extern const char* const select_trials;  ///< trials of `:session`, in order
Trial read_trial(SQLite::Statement& row);

/// Does the same as TunedDb::fastest_configs().
std::vector<Config> read_fastest_configs(SQLite::Database& database,
                                         const std::string& device_fingerprint,
                                         const std::string& problem_key, bool cold, int most);

void put_comparison(SQLite::Database& database, const Comparison& comparison);
extern const char* const select_comparisons;  ///< comparisons of the session `:session`
Comparison read_comparison(SQLite::Statement& row);

void put_peer(SQLite::Database& database, const Peer& peer);
extern const char* const select_peers;  ///< all peers, by problem
Peer read_peer(SQLite::Statement& row);

void put_ceiling(SQLite::Database& database, std::int64_t device, const Ceiling& ceiling);
/// Ceilings of all cards of the device `:fingerprint`, by kind. The latest of a kind comes first.
extern const char* const select_ceilings;
Ceiling read_ceiling(SQLite::Statement& row);

void put_unsafe(SQLite::Database& database, std::int64_t device, const UnsafePart& part);
/// Returns the failed health checks of all cards of a device, for all drivers.
std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database,
                                          const std::string& fingerprint);
/// Does the same as TunedDb::unsafe().
std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database, const DeviceInfo& device);

extern const char* const select_sessions;  ///< all sessions, in order
StoredSession read_session(SQLite::Statement& row);

}  // namespace greta::db
