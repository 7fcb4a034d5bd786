#include "db/sqlite/counter_rows.hpp"

#include "db/sqlite/columns.hpp"
#include "db/sqlite/guard.hpp"
#include "runtime/device/result.hpp"

namespace greta::db {
namespace {

std::map<std::string, double> figures_of(const nlohmann::json& json) {
  std::map<std::string, double> figures;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number()) throw Error("counters: figure " + name + " is not a number");
    figures[name] = value.get<double>();
  }
  return figures;
}

}  // namespace

void put_counters(SQLite::Database& database, const StoredCounters& stored) {
  SealedInsert insert(database, "counters", Existing::replaced,
                      {"device", "problem", "config", "cold", "device_name", "driver", "compiler",
                       "source", "passes", "figures", "us", "card", "recorded_utc"});
  const Counters& counters = stored.counters;
  auto& row = insert.row();
  row.bind(":device", stored.device);
  row.bind(":problem", stored.problem);
  row.bind(":config", stored.config.text());
  row.bind(":cold", counters.cold);
  row.bind(":device_name", stored.device_name);
  row.bind(":driver", stored.driver);
  row.bind(":compiler", stored.compiler);
  row.bind(":source", counters.source);
  row.bind(":passes", counters.passes);
  row.bind(":figures", nlohmann::json(counters.figures).dump());
  if (stored.us > 0) row.bind(":us", stored.us);
  if (!stored.card.empty()) row.bind(":card", stored.card);
  row.bind(":recorded_utc", stored.recorded_utc);
  insert.run();
}

std::vector<StoredCounters> read_counters(SQLite::Database& database) {
  SQLite::Statement select(
      database, "SELECT * FROM counters ORDER BY problem, device_name, device, config, cold DESC");
  std::vector<StoredCounters> all;
  while (select.executeStep()) {
    StoredCounters stored;
    stored.device = text(select, "device");
    stored.problem = text(select, "problem");
    stored.config = config_from_text(text(select, "config"));
    stored.device_name = text(select, "device_name");
    stored.driver = text(select, "driver");
    stored.compiler = text(select, "compiler");
    stored.counters = {.source = text(select, "source"),
                       .passes = select.getColumn("passes").getInt(),
                       .cold = boolean(select, "cold"),
                       .figures = figures_of(json(select, "figures"))};
    if (!select.getColumn("us").isNull()) stored.us = real(select, "us");
    if (!select.getColumn("card").isNull()) stored.card = text(select, "card");
    stored.recorded_utc = text(select, "recorded_utc");
    all.push_back(std::move(stored));
  }
  return all;
}

}  // namespace greta::db
