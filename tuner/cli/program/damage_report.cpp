#include "tuner/cli/program/damage_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {

void tell_rows(const std::vector<DamagedRow>& rows) {
  for (const auto& line : damage_lines(rows)) tell("  " + line);
}

nlohmann::json damage_json(const std::vector<DamagedRow>& rows) {
  auto list = nlohmann::json::array();
  for (const auto& row : rows) {
    list.push_back({{"table", row.table},
                    {"row", row.key},
                    {"problem", row.problem},
                    {"device", row.device},
                    {"cause", row.cause}});
  }
  return list;
}

std::string left_out_text(std::size_t rows, bool shipped) {
  const auto remedy =
      shipped ? "a shipped file is never written, so install it again, or use another one with --db"
              : "tuning a problem again replaces a damaged result, "
                "greta-db prune --damaged removes all of them";
  return fmt::format("{} skipped because of damage: {}",
                     format_count(static_cast<std::int64_t>(rows), "row"), remedy);
}

void tell_damage(const TunedDb& db, const std::vector<DamagedRow>& rows) {
  tell(fmt::format("{}: {}:", db.file().string(), left_out_text(rows.size(), db.shipped())));
  tell_rows(rows);
}

bool tell_damage(const TunedDb& db) {
  const auto rows = db.damaged();
  if (!rows.empty()) tell_damage(db, rows);
  return !rows.empty();
}

int end_of_reading(const TunedDb& db, int code) {
  return tell_damage(db) && code == exit_done ? exit_failed : code;
}

int end_of_writing(TunedDb& db, int code) {
  if (const auto rows = db.discarded(); !rows.empty()) {
    tell(fmt::format("{}: {} that this command replaced or removed:", db.file().string(),
                     format_count(static_cast<std::int64_t>(rows.size()), "damaged row")));
    tell_rows(rows);
  }
  db.confirm();
  return end_of_reading(db, code);
}

void tell_unless_stored(const TunedDb& db) {
  try {
    db.confirm();
  } catch (const std::exception& error) {
    tell(error.what());
  }
}

}  // namespace greta::tuner::cli
