#include "db/sqlite/energy_rows.hpp"

#include "db/enum_text.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/guard.hpp"
#include "db/sqlite/winner_rows.hpp"

namespace greta::db {

void put_energy_winner(SQLite::Database& database, std::int64_t session,
                       const EnergyWinner& winner) {
  const StoredWinner origin = origin_of(database, session);
  SQLite::Statement cold(database, "SELECT cold FROM sessions WHERE id = ?");
  cold.bind(1, session);
  cold.executeStep();
  SealedInsert insert(database, "energy_winners", Existing::replaced,
                      {"problem", "circumstances", "cold", "session", "started_utc", "config",
                       "is_default", "joules", "low", "high", "watts", "us", "default_joules",
                       "default_low", "default_high", "source", "card"});
  auto& row = insert.row();
  row.bind(":problem", origin.problem.key());
  row.bind(":circumstances",
           put_circumstances(database, origin.device.fingerprint(), origin.provenance));
  row.bind(":cold", cold.getColumn(0).getInt());
  row.bind(":session", session);
  row.bind(":started_utc", origin.provenance.started_utc);
  row.bind(":config", winner.config.text());
  row.bind(":is_default", winner.is_default);
  row.bind(":joules", winner.energy.joules);
  row.bind(":low", winner.energy.low);
  row.bind(":high", winner.energy.high);
  row.bind(":watts", winner.energy.watts);
  row.bind(":us", winner.energy.us);
  row.bind(":default_joules", winner.default_energy.joules);
  row.bind(":default_low", winner.default_energy.low);
  row.bind(":default_high", winner.default_energy.high);
  row.bind(":source", winner.energy.source);
  if (!winner.card.empty()) row.bind(":card", winner.card);
  insert.run();
}

std::vector<StoredEnergyWinner> read_energy_winners(SQLite::Database& database) {
  SQLite::Statement select(database, R"(
    SELECT e.*, d.fingerprint, d.name AS device_name, c.driver FROM energy_winners e
      JOIN circumstances c ON c.id = e.circumstances JOIN devices d ON d.id = c.device
    ORDER BY e.problem, d.name, d.id, e.cold DESC, e.started_utc DESC, e.session DESC)");
  std::vector<StoredEnergyWinner> all;
  while (select.executeStep()) {
    StoredEnergyWinner stored;
    stored.question = {text(select, "problem"), text(select, "fingerprint"),
                       boolean(select, "cold")};
    stored.device = text(select, "device_name");
    stored.driver = text(select, "driver");
    stored.started_utc = text(select, "started_utc");
    EnergyWinner& winner = stored.winner;
    winner.config = config_from_text(text(select, "config"));
    winner.is_default = boolean(select, "is_default");
    winner.energy = {real(select, "joules"), real(select, "low"), real(select, "high"),
                     real(select, "watts"),  real(select, "us"),  text(select, "source")};
    winner.default_energy = {real(select, "default_joules"),
                             real(select, "default_low"),
                             real(select, "default_high"),
                             0,
                             0,
                             winner.energy.source};
    winner.card = text(select, "card");
    all.push_back(std::move(stored));
  }
  return all;
}

}  // namespace greta::db
