#include "db/sqlite/finalist_rows.hpp"

#include "db/enum_text.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/guard.hpp"

namespace greta::db {

void put_finalists(SQLite::Database& database, std::int64_t session,
                   const std::vector<Finalist>& finalists) {
  SealedInsert insert(
      database, "finalists", Existing::replaced,
      {"session", "place", "config", "is_default", "samples_us", "batch", "left_as"});
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    auto& row = insert.row();
    row.bind(":session", session);
    row.bind(":place", static_cast<std::int64_t>(i));
    row.bind(":config", finalists[i].config.text());
    row.bind(":is_default", finalists[i].is_default);
    row.bind(":samples_us", json_numbers(finalists[i].us).dump());
    row.bind(":batch", finalists[i].batch);
    if (finalists[i].left) row.bind(":left_as", std::string(to_string(*finalists[i].left)));
    insert.run();
  }
}

std::vector<Finalist> read_finalists(SQLite::Database& database, std::int64_t session) {
  SQLite::Statement select(database, "SELECT * FROM finalists WHERE session = ? ORDER BY place");
  select.bind(1, session);
  std::vector<Finalist> all;
  while (select.executeStep()) {
    Finalist one{.config = config_from_text(text(select, "config"))};
    one.us = numbers_from_json(json(select, "samples_us"), "samples_us");
    one.batch = select.getColumn("batch").getInt();
    one.is_default = boolean(select, "is_default");
    if (!select.getColumn("left_as").isNull())
      one.left = departure_from_text(text(select, "left_as"));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace greta::db
