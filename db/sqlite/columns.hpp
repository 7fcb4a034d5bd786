#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "db/measurement.hpp"
#include "kernels/model/operation.hpp"

namespace greta::db {

// Single columns of a row, by name; what rows of several tables have in common.

/// NULL stands for NaN: SQLite stores no NaN.
double real(SQLite::Statement& row, const char* name);
std::string text(SQLite::Statement& row, const char* name);
bool boolean(SQLite::Statement& row, const char* name);
/// Throws Error for text that is no JSON.
nlohmann::json json(SQLite::Statement& row, const char* name);

/// Whether a database's keys are those of db/earlier_keys.hpp: a shipped one, which is never
/// rewritten.
bool has_earlier_keys(SQLite::Database& database);
/// A problem's key as this database has it.
std::string stored_key(SQLite::Database& database, const std::string& key);

/// passed, error, bound, method and detail.
void bind_verdict(SQLite::Statement& insert, const Verdict& verdict);
Verdict read_verdict(SQLite::Statement& row);
/// All columns of a measurement but cold and raced.
void bind_measurement(SQLite::Statement& insert, const Measurement& measurement);
Measurement read_measurement(SQLite::Statement& row);

/// Throws Error: there is no such session, or its row is damaged.
[[noreturn]] void refuse_session(std::int64_t session);
/// Runs a statement that writes one row for a session; throws Error where there is none to write
/// to.
void execute_for_session(SQLite::Statement& statement, std::int64_t session);

}  // namespace greta::db
