#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// The last schema in which a row of devices was a card.
constexpr int last_schema_of_single_cards = 5;

/// Migrates to schema 6 as described in 0006_cards.sql. Cards of one device model become one row.
/// Where two of them have a winner of one problem in the same circumstances, the one that was
/// certified later is the answer; the other's session and trials stay. Damaged rows stay as they
/// are, and damaged. What sound rows no longer refer to but damaged ones do stays without a
/// checksum.
void merge_cards(SQLite::Database& database);

}  // namespace greta::db
