#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <string>

#include "db/tuned_db.hpp"

namespace greta::db {

// Functions that write and read rows. They run inside the caller's transaction and throw Error for
// a stored value that can't be read, and for a session that does not exist.

/// Inserts or updates a device that is present now. Returns the row's id.
std::int64_t put_device(SQLite::Database& database, const DeviceInfo& device);
/// Inserts or updates a device as another database saw it.
std::int64_t put_device(SQLite::Database& database, const StoredDevice& device);
std::int64_t put_problem(SQLite::Database& database, const Problem& problem);

std::int64_t insert_session(SQLite::Database& database, const SessionRecord& session);
void finish_session(SQLite::Database& database, std::int64_t session, const std::string& outcome);

void insert_trial(SQLite::Database& database, std::int64_t session, const Trial& trial);
extern const char* const select_trials;  ///< trials of `:session`, in order
Trial read_trial(SQLite::Statement& row);

void put_comparison(SQLite::Database& database, const Comparison& comparison);
extern const char* const select_comparisons;  ///< comparisons of the session `:session`
Comparison read_comparison(SQLite::Statement& row);

void put_peer(SQLite::Database& database, const Peer& peer);
extern const char* const select_peers;  ///< all peers, by problem
Peer read_peer(SQLite::Statement& row);

void put_ceiling(SQLite::Database& database, std::int64_t device, const Ceiling& ceiling);
extern const char* const select_ceilings;  ///< ceilings of the device `:fingerprint`
Ceiling read_ceiling(SQLite::Statement& row);

void put_unsafe(SQLite::Database& database, std::int64_t device, const UnsafePart& part);
/// Returns a device's failed health checks for all drivers.
std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database,
                                          const std::string& fingerprint);
/// Does the same as TunedDb::unsafe().
std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database, const DeviceInfo& device);

extern const char* const select_sessions;  ///< all sessions, in order
StoredSession read_session(SQLite::Statement& row);
extern const char* const select_devices;  ///< all devices, by name
StoredDevice read_device(SQLite::Statement& row);

}  // namespace greta::db
