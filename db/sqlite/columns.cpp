#include "db/sqlite/columns.hpp"

#include <fmt/format.h>

#include <limits>

#include "db/enum_text.hpp"

namespace greta::db {

double real(SQLite::Statement& row, const char* name) {
  const auto column = row.getColumn(name);
  return column.isNull() ? std::numeric_limits<double>::quiet_NaN() : column.getDouble();
}

std::string text(SQLite::Statement& row, const char* name) {
  return row.getColumn(name).getString();
}

bool boolean(SQLite::Statement& row, const char* name) {
  return row.getColumn(name).getInt() != 0;
}

nlohmann::json json(SQLite::Statement& row, const char* name) {
  auto value = nlohmann::json::parse(text(row, name), nullptr, false);
  if (value.is_discarded()) throw Error(fmt::format("column {} holds no JSON", name));
  return value;
}

void bind_verdict(SQLite::Statement& insert, const Verdict& verdict) {
  insert.bind(":passed", verdict.passed);
  insert.bind(":error", verdict.error);
  insert.bind(":bound", verdict.bound);
  insert.bind(":method", verdict.method);
  insert.bind(":detail", verdict.detail);
}

Verdict read_verdict(SQLite::Statement& row) {
  return {boolean(row, "passed"), real(row, "error"), real(row, "bound"), text(row, "method"),
          text(row, "detail")};
}

void bind_measurement(SQLite::Statement& insert, const Measurement& measurement) {
  insert.bind(":samples_us", json_numbers(measurement.samples_us).dump());
  insert.bind(":median_us", measurement.median_us);
  insert.bind(":low_us", measurement.low_us);
  insert.bind(":high_us", measurement.high_us);
  insert.bind(":p99_us", measurement.p99_us);
  insert.bind(":batch", measurement.batch);
  insert.bind(":dropped", measurement.dropped);
  insert.bind(":flush_bytes", static_cast<std::int64_t>(measurement.flush_bytes));
  insert.bind(":clocks", measurement.clocks);
  const CardState& state = measurement.card_state;
  if (state.watts) insert.bind(":watts", *state.watts);
  if (state.celsius) insert.bind(":celsius", *state.celsius);
  if (!state.throttled.empty()) insert.bind(":throttled", state.throttled);
}

Measurement read_measurement(SQLite::Statement& row) {
  Measurement measurement;
  measurement.samples_us = numbers_from_json(json(row, "samples_us"), "samples_us");
  measurement.median_us = real(row, "median_us");
  measurement.low_us = real(row, "low_us");
  measurement.high_us = real(row, "high_us");
  measurement.p99_us = real(row, "p99_us");
  measurement.batch = row.getColumn("batch").getInt();
  measurement.dropped = row.getColumn("dropped").getInt();
  measurement.flush_bytes = static_cast<std::uint64_t>(row.getColumn("flush_bytes").getInt64());
  measurement.clocks = text(row, "clocks");
  CardState& state = measurement.card_state;
  if (!row.getColumn("watts").isNull()) state.watts = real(row, "watts");
  if (!row.getColumn("celsius").isNull()) state.celsius = real(row, "celsius");
  if (!row.getColumn("throttled").isNull()) state.throttled = text(row, "throttled");
  return measurement;
}

void refuse_session(std::int64_t session) {
  throw Error(fmt::format("there is no session {}", session));
}

void execute_for_session(SQLite::Statement& statement, std::int64_t session) {
  statement.bind(":session", session);
  if (statement.exec() == 0) refuse_session(session);
}

}  // namespace greta::db
