// The part of TunedDb that keeps runs, what their sessions need to be resumed, and pins.

#include <fmt/format.h>

#include "db/sqlite/run_rows.hpp"
#include "db/sqlite/tuned_db_impl.hpp"
#include "db/sqlite/winner_rows.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

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
