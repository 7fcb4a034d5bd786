#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

// Functions for rows of the tables devices and cards. See rows.hpp for their conventions.

/// Inserts or updates a device that is present now, and its card. Returns the device's row id.
std::int64_t put_device(SQLite::Database& database, const DeviceInfo& device);
/// Inserts or updates a device and its cards as another database saw them. Cards that are not among
/// them stay.
std::int64_t put_device(SQLite::Database& database, const StoredDevice& device);
/// Updates the row with this id, but not the cards.
void update_device(SQLite::Database& database, std::int64_t id, const StoredDevice& device);
/// Inserts or replaces a card of the device with this row id. A card without a UUID is not stored.
void put_card(SQLite::Database& database, std::int64_t device, const StoredCard& card);

/// Returns the row id of a device, or nothing if there is none.
std::optional<std::int64_t> find_device(SQLite::Database& database, const std::string& fingerprint);
/// Returns the row id of a device that must be there. Throws Error if it is not.
std::int64_t device_row(SQLite::Database& database, const std::string& fingerprint);
/// Returns all devices with their cards, by name.
std::vector<StoredDevice> read_devices(SQLite::Database& database);

}  // namespace greta::db
