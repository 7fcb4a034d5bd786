#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <vector>

#include "db/run.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

// Functions for rows of runs, for what sessions store to be resumed, and for pins. See rows.hpp for
// their conventions.

std::int64_t insert_run(SQLite::Database& database, const RunRecord& run);
void finish_run(SQLite::Database& database, std::int64_t run);
/// Returns the latest run of a request, with this seed if one is given, unless it finished.
std::optional<UnfinishedRun> find_unfinished_run(SQLite::Database& database,
                                                 const std::string& request,
                                                 std::optional<std::uint64_t> seed);
std::optional<RunSession> find_session_of_run(SQLite::Database& database, std::int64_t run,
                                              const std::string& device_fingerprint,
                                              const std::string& problem_key, bool cold);
void reopen_session(SQLite::Database& database, std::int64_t session);
void put_plan(SQLite::Database& database, std::int64_t session, const SearchPlan& plan);

void put_pin(SQLite::Database& database, const Question& question);
bool remove_pin(SQLite::Database& database, const Question& question);
std::vector<Pin> read_pins(SQLite::Database& database);
/// Returns the answer of a problem, if it is pinned.
std::optional<Config> pinned_config(SQLite::Database& database, const Question& question);

}  // namespace greta::db
