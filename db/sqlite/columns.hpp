#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "db/measurement.hpp"
#include "kernels/model/operation.hpp"

namespace greta::db {

// Functions that read single columns of a row by name, and groups of columns that several tables
// share.

/// Returns NaN for NULL, because SQLite stores no NaN.
double real(SQLite::Statement& row, const char* name);
std::string text(SQLite::Statement& row, const char* name);
bool boolean(SQLite::Statement& row, const char* name);
/// Throws Error for text that is not JSON.
nlohmann::json json(SQLite::Statement& row, const char* name);

/// Binds passed, error, bound, method and detail.
void bind_verdict(SQLite::Statement& insert, const Verdict& verdict);
Verdict read_verdict(SQLite::Statement& row);
/// Binds all columns of a measurement except cold and raced.
void bind_measurement(SQLite::Statement& insert, const Measurement& measurement);
Measurement read_measurement(SQLite::Statement& row);

/// Throws Error because there is no such session, or its row is damaged.
[[noreturn]] void refuse_session(std::int64_t session);
/// Runs a statement that writes one row for a session. Throws Error if no row was written.
void execute_for_session(SQLite::Statement& statement, std::int64_t session);

}  // namespace greta::db
