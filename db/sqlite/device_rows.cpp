#include "db/sqlite/device_rows.hpp"

#include <string>
#include <utility>

#include "db/json.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/guard.hpp"
#include "runtime/device/system/utc.hpp"

namespace greta::db {
namespace {

constexpr const char* select_device = "SELECT * FROM devices WHERE fingerprint = :fingerprint";

/// Returns the cards of a device.
std::vector<StoredCard> read_cards(SQLite::Database& database, std::int64_t device) {
  SQLite::Statement select(database, "SELECT * FROM cards WHERE device = ? ORDER BY uuid");
  select.bind(1, device);
  std::vector<StoredCard> cards;
  while (select.executeStep()) {
    cards.push_back({{text(select, "uuid"), text(select, "pci_address")},
                     text(select, "first_seen_utc"),
                     text(select, "last_seen_utc")});
  }
  return cards;
}

void bind_device(SQLite::Statement& row, const StoredDevice& device) {
  row.bind(":fingerprint", device.info.fingerprint());
  row.bind(":name", device.info.name);
  row.bind(":driver", device.info.driver);
  row.bind(":info", to_json(device.info).dump());
  row.bind(":first_seen_utc", device.first_seen_utc);
  row.bind(":last_seen_utc", device.last_seen_utc);
}

}  // namespace

std::optional<std::int64_t> find_device(SQLite::Database& database,
                                        const std::string& fingerprint) {
  SQLite::Statement select(database, select_device);
  select.bind(":fingerprint", fingerprint);
  if (!select.executeStep()) return std::nullopt;
  return select.getColumn("id").getInt64();
}

std::int64_t device_row(SQLite::Database& database, const std::string& fingerprint) {
  const auto id = find_device(database, fingerprint);
  if (!id) throw Error("there is no device " + fingerprint);
  return *id;
}

std::int64_t put_device(SQLite::Database& database, const DeviceInfo& device) {
  SQLite::Statement select(database, select_device);
  select.bind(":fingerprint", device.fingerprint());
  const auto now = utc_now();
  StoredDevice stored{device, now, now, {}};
  StoredCard card{device.card, now, now};
  if (select.executeStep()) {
    stored.first_seen_utc = text(select, "first_seen_utc");
    for (const auto& known : read_cards(database, select.getColumn("id").getInt64())) {
      if (known.card.uuid == card.card.uuid) card.first_seen_utc = known.first_seen_utc;
    }
  }
  stored.cards.push_back(std::move(card));
  return put_device(database, stored);
}

void update_device(SQLite::Database& database, std::int64_t id, const StoredDevice& device) {
  SQLite::Statement update(database, sealed_update(database, "devices",
                                                   {"fingerprint", "name", "driver", "info",
                                                    "first_seen_utc", "last_seen_utc"},
                                                   "id = :id"));
  update.bind(":id", id);
  bind_device(update, device);
  update.exec();
}

void put_card(SQLite::Database& database, std::int64_t device, const StoredCard& card) {
  if (card.card.uuid.empty()) return;
  SealedInsert insert(database, "cards", Existing::replaced,
                      {"device", "uuid", "pci_address", "first_seen_utc", "last_seen_utc"});
  insert.row().bind(":device", device);
  insert.row().bind(":uuid", card.card.uuid);
  insert.row().bind(":pci_address", card.card.pci_address);
  insert.row().bind(":first_seen_utc", card.first_seen_utc);
  insert.row().bind(":last_seen_utc", card.last_seen_utc);
  insert.run();
}

std::int64_t put_device(SQLite::Database& database, const StoredDevice& device) {
  const auto fingerprint = device.info.fingerprint();
  if (const auto id = find_device(database, fingerprint)) {
    update_device(database, *id, device);
    for (const auto& card : device.cards) put_card(database, *id, card);
    return *id;
  }
  set_aside(database, "devices", "fingerprint", "fingerprint = ?1", {fingerprint});
  const auto id = next_id(database, "devices");
  SealedInsert insert(
      database, "devices", Existing::refused,
      {"id", "fingerprint", "name", "driver", "info", "first_seen_utc", "last_seen_utc"});
  insert.row().bind(":id", id);
  bind_device(insert.row(), device);
  insert.run();
  for (const auto& card : device.cards) put_card(database, id, card);
  return id;
}

std::vector<StoredDevice> read_devices(SQLite::Database& database) {
  SQLite::Statement select(database, "SELECT * FROM devices ORDER BY name, id");
  std::vector<StoredDevice> devices;
  while (select.executeStep()) {
    devices.push_back({device_from_json(json(select, "info")), text(select, "first_seen_utc"),
                       text(select, "last_seen_utc"),
                       read_cards(database, select.getColumn("id").getInt64())});
  }
  return devices;
}

}  // namespace greta::db
