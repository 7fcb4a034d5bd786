#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::tuner::cli {

/// An object for each row (docs/json.md).
nlohmann::json damage_json(const std::vector<DamagedRow>& rows);

/// A line for each of the first rows, on standard error.
void tell_rows(const std::vector<DamagedRow>& rows);

/// How many rows are left out, and what can be done about it: part of a line. Rows that refer to a
/// damaged one are among them.
std::string left_out_text(std::size_t rows, bool shipped);

/// Names on standard error what of a database is left out because it is damaged, and what to do.
/// False where nothing is.
bool tell_damage(const TunedDb& db);

/// The end of a command that showed what a database holds: its exit code, or exit_failed where
/// something was left out, which is named.
int end_of_reading(const TunedDb& db, int code);
/// The end of a command that wrote: names the damaged rows that were replaced or removed, and reads
/// back what was stored. Throws Error where that is not there; otherwise as above.
int end_of_writing(TunedDb& db, int code);
/// Before a command ends in another error: names on standard error what it has stored and is not
/// there. Never throws.
void tell_unless_stored(const TunedDb& db);

}  // namespace greta::tuner::cli
