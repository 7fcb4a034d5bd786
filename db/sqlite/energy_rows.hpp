#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

// Functions for rows of the table energy_winners. See rows.hpp for their conventions.

void put_energy_winner(SQLite::Database& database, std::int64_t session,
                       const EnergyWinner& winner);
/// Returns all of them, by problem; the latest of a question first.
std::vector<StoredEnergyWinner> read_energy_winners(SQLite::Database& database);

}  // namespace greta::db
