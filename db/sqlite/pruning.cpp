#include "db/sqlite/pruning.hpp"

namespace greta {
namespace {

std::int64_t remove_winners(SQLite::Database& database, const std::vector<StoredWinner>& winners) {
  SQLite::Statement remove(database, R"(
    DELETE FROM winners WHERE problem = :problem AND cold = :cold AND circumstances = (
      SELECT c.id FROM circumstances c JOIN devices d ON d.id = c.device
      WHERE d.fingerprint = :fingerprint AND c.driver = :driver AND c.compiler = :compiler
        AND c.template_key = :template_key))");
  std::int64_t removed = 0;
  for (const auto& winner : winners) {
    remove.bind(":problem", winner.problem.key());
    remove.bind(":cold", winner.winner.cold);
    remove.bind(":fingerprint", winner.device.fingerprint());
    remove.bind(":driver", winner.provenance.driver);
    remove.bind(":compiler", winner.provenance.compiler);
    remove.bind(":template_key", winner.provenance.template_key);
    removed += remove.exec();
    remove.reset();
  }
  return removed;
}

std::int64_t remove_trials(SQLite::Database& database, const PruneRequest& request) {
  SQLite::Statement remove(database, R"(
    DELETE FROM trials WHERE session = :session AND (NOT :only_failed OR status <> 'ok'))");
  std::int64_t removed = 0;
  for (const auto session : request.trials_of) {
    remove.bind(":session", session);
    remove.bind(":only_failed", request.only_failed);
    removed += remove.exec();
    remove.reset();
  }
  return removed;
}

}  // namespace

// A session without an outcome may be running: it stays.
Pruned remove_rows(SQLite::Database& database, const PruneRequest& request) {
  Pruned pruned;
  pruned.winners = remove_winners(database, request.winners);
  pruned.trials = remove_trials(database, request);
  database.exec(R"(
    DELETE FROM comparisons
    WHERE faster NOT IN (SELECT session FROM winners WHERE session IS NOT NULL)
      OR slower NOT IN (SELECT session FROM winners WHERE session IS NOT NULL))");
  pruned.sessions = database.exec(R"(
    DELETE FROM sessions WHERE outcome IS NOT NULL
      AND id NOT IN (SELECT session FROM trials)
      AND id NOT IN (SELECT session FROM winners WHERE session IS NOT NULL))");
  database.exec(R"(
    DELETE FROM circumstances WHERE id NOT IN (SELECT circumstances FROM winners))");
  database.exec("DELETE FROM problems WHERE id NOT IN (SELECT problem FROM sessions)");
  pruned.devices = database.exec(R"(
    DELETE FROM devices WHERE id NOT IN (SELECT device FROM sessions)
      AND id NOT IN (SELECT device FROM circumstances)
      AND id NOT IN (SELECT device FROM ceilings)
      AND id NOT IN (SELECT device FROM unsafe))");
  return pruned;
}

}  // namespace greta
