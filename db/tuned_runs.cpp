// The part of TunedDb that keeps runs, what their sessions need to be resumed, and pins.

#include <fmt/format.h>

#include "db/sqlite/counter_rows.hpp"
#include "db/sqlite/energy_rows.hpp"
#include "db/sqlite/rows.hpp"
#include "db/sqlite/run_rows.hpp"
#include "db/sqlite/tuned_db_impl.hpp"
#include "db/sqlite/winner_rows.hpp"
#include "db/tuned_db.hpp"
#include "runtime/device/system/utc.hpp"

namespace greta::db {
namespace {

// A process that was killed with SIGKILL says nothing about its candidate, and lost work that was
// begun again has a trial of its own, or a result that came after a stop. Of other lost work, only
// a single candidate is a suspect.
constexpr const char* select_ended_badly = R"(
    SELECT t.*, coalesce(t.stand_in, p.key) AS problem_key
    FROM sessions now JOIN problems of_now ON of_now.id = now.problem
      JOIN problems p ON p.op = of_now.op
      JOIN sessions s ON s.problem = p.id AND s.device = now.device AND s.driver = now.driver
        AND s.compiler = now.compiler AND s.template_key = now.template_key
      JOIN trials t ON t.session = s.id
    WHERE now.id = :session AND t.status IN ('timeout', 'crash')
      AND t.message NOT LIKE '%killed by signal 9%' AND t.message NOT LIKE '%; restarted'
      AND CASE WHEN t.phase IS 'lost'
        THEN s.id <= now.id AND (t.message LIKE 'evaluating: %' OR t.message LIKE 'verifying: %')
          AND NOT EXISTS (SELECT 1 FROM trials o WHERE o.session = s.id AND o.config = t.config
            AND (o.phase IS NOT 'lost' OR o.status NOT IN ('timeout', 'crash')))
        ELSE s.id < now.id END
    ORDER BY t.id)";

}  // namespace

std::int64_t TunedDb::begin_run(const RunRecord& run) {
  std::int64_t id = 0;
  impl_->connection.write([&](SQLite::Database& database) {
    id = insert_run(database, run);
    impl_->runs.take(id);  // before another process can see it
  });
  return id;
}

void TunedDb::end_run(std::int64_t run) {
  impl_->connection.write([&](SQLite::Database& database) { finish_run(database, run); });
  impl_->runs.release(run);
}

std::optional<UnfinishedRun> TunedDb::take_unfinished_run(const std::string& request,
                                                          std::optional<std::uint64_t> seed) {
  std::optional<UnfinishedRun> found;
  impl_->connection.read(
      [&](SQLite::Database& database) { found = find_unfinished_run(database, request, seed); });
  if (!found || !impl_->runs.take(found->id)) return std::nullopt;
  return found;
}

std::optional<RunSession> TunedDb::find_session(std::int64_t run, const Question& question) const {
  std::optional<RunSession> found;
  impl_->connection.read([&](SQLite::Database& database) {
    found = find_session_of_run(database, run, question.device_fingerprint, question.problem_key,
                                question.cold);
  });
  return found;
}

void TunedDb::reopen_session(std::int64_t session) {
  impl_->connection.write(
      [&](SQLite::Database& database) { db::reopen_session(database, session); });
}

void TunedDb::set_plan(std::int64_t session, const SearchPlan& plan) {
  impl_->connection.write([&](SQLite::Database& database) { put_plan(database, session, plan); });
}

std::vector<Trial> TunedDb::ended_badly(std::int64_t session) const {
  std::vector<Trial> all;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(database, select_ended_badly);
    select.bind(":session", session);
    while (select.executeStep()) all.push_back(read_trial(select));
  });
  return all;
}

void TunedDb::set_energy_winner(std::int64_t session, const EnergyWinner& winner) {
  impl_->connection.write(
      [&](SQLite::Database& database) { put_energy_winner(database, session, winner); });
}

std::vector<StoredEnergyWinner> TunedDb::energy_winners() const {
  std::vector<StoredEnergyWinner> all;
  impl_->connection.read([&](SQLite::Database& database) { all = read_energy_winners(database); });
  return all;
}

void TunedDb::set_counters(const DeviceInfo& device, const std::string& problem_key,
                           const Config& config, const Counters& counters, double us) {
  const StoredCounters stored{.device = device.fingerprint(),
                              .problem = problem_key,
                              .config = config,
                              .device_name = device.name,
                              .driver = device.driver,
                              .compiler = device.compiler,
                              .counters = counters,
                              .us = us,
                              .card = device.card.uuid,
                              .recorded_utc = utc_now()};
  impl_->connection.write([&](SQLite::Database& database) { put_counters(database, stored); });
}

std::vector<StoredCounters> TunedDb::counters() const {
  std::vector<StoredCounters> all;
  impl_->connection.read([&](SQLite::Database& database) { all = read_counters(database); });
  return all;
}

void TunedDb::pin(const Question& question) {
  impl_->connection.write([&](SQLite::Database& database) {
    if (read_winners(database, question.device_fingerprint, question.problem_key, question.cold)
            .empty()) {
      throw Error(fmt::format("there is no result of {} to pin", question.problem_key));
    }
    put_pin(database, question);
  });
}

bool TunedDb::unpin(const Question& question) {
  bool was_pinned = false;
  impl_->connection.write(
      [&](SQLite::Database& database) { was_pinned = remove_pin(database, question); });
  return was_pinned;
}

std::vector<Pin> TunedDb::pins() const {
  std::vector<Pin> all;
  impl_->connection.read([&](SQLite::Database& database) { all = read_pins(database); });
  return all;
}

std::optional<Config> TunedDb::pinned(const Question& question) const {
  std::optional<Config> config;
  impl_->connection.read(
      [&](SQLite::Database& database) { config = pinned_config(database, question); });
  return config;
}

}  // namespace greta::db
