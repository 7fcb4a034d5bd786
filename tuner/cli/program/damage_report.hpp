#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::tuner::cli {

/// Returns one object per row (docs/json.md).
nlohmann::json damage_json(const std::vector<DamagedRow>& rows);

/// Prints one line for each of the first rows to standard error.
void tell_rows(const std::vector<DamagedRow>& rows);

/// Returns how many rows are ignored and how to repair them, as part of a line. Rows that refer to
/// a damaged one are counted.
std::string left_out_text(std::size_t rows, bool shipped);

/// Prints to standard error which rows of a database are ignored because they are damaged, and how
/// to repair them. Returns false if there are none.
bool tell_damage(const TunedDb& db);
/// The same for these rows, of which there is at least one.
void tell_damage(const TunedDb& db, const std::vector<DamagedRow>& rows);

/// Ends a command that showed a database's contents: returns `code`, or exit_failed if rows were
/// ignored, which are named.
int end_of_reading(const TunedDb& db, int code);
/// Ends a command that wrote: names the damaged rows that were replaced or removed, and reads the
/// stored data back. Throws Error if it is missing; otherwise like end_of_reading().
int end_of_writing(TunedDb& db, int code);
/// Before a command ends with another error: names on standard error the data that it stored and
/// that is missing. Never throws.
void tell_unless_stored(const TunedDb& db);

}  // namespace greta::tuner::cli
