#include "db/sqlite/pruning.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

#include "db/sqlite/checksums.hpp"
#include "db/sqlite/guard.hpp"
#include "db/sqlite/quoting.hpp"

namespace greta::db {
namespace {

std::int64_t remove_winners(SQLite::Database& database, const std::vector<StoredWinner>& winners) {
  SQLite::Statement remove(database, R"(
    DELETE FROM main.winners WHERE problem = :problem AND cold = :cold
      AND NOT EXISTS (SELECT 1 FROM pins p JOIN devices d ON d.id = p.device
        WHERE p.problem = :problem AND p.cold = :cold AND d.fingerprint = :fingerprint)
      AND circumstances = (
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
    DELETE FROM main.trials WHERE id IN (
      SELECT id FROM trials WHERE session = :session AND (NOT :only_failed OR status <> 'ok')))");
  std::int64_t removed = 0;
  for (const auto session : request.trials_of) {
    remove.bind(":session", session);
    remove.bind(":only_failed", request.only_failed);
    removed += remove.exec();
    remove.reset();
  }
  return removed;
}

/// A reference without whose target a row has no meaning.
struct Reference {
  const char* table;
  const char* condition;  ///< true for a row without a sound target
};
/// The order matters: rows that are removed for one reference leave other rows without a target.
constexpr std::array<Reference, 11> references{
    {{"cards", "device NOT IN (SELECT id FROM devices)"},
     {"circumstances", "device NOT IN (SELECT id FROM devices)"},
     {"ceilings", "device NOT IN (SELECT id FROM devices)"},
     {"unsafe", "device NOT IN (SELECT id FROM devices)"},
     {"pins", "device NOT IN (SELECT id FROM devices)"},
     {"sessions",
      "(device NOT IN (SELECT id FROM devices) OR problem NOT IN (SELECT id FROM problems))"},
     {"winners", "circumstances NOT IN (SELECT id FROM circumstances)"},
     {"energy_winners", "circumstances NOT IN (SELECT id FROM circumstances)"},
     {"trials", "session NOT IN (SELECT id FROM sessions)"},
     {"finalists", "session NOT IN (SELECT id FROM sessions)"},
     {"comparisons",
      "(faster NOT IN (SELECT id FROM sessions) OR slower NOT IN (SELECT id FROM sessions))"}}};

/// Removes references to lost sessions and runs. A result is complete without its session, and a
/// session without its run.
void forget_lost_sessions(SQLite::Database& database) {
  database.exec(sealed_update(database, "sessions", {"run"}, "run NOT IN (SELECT id FROM runs)"));
  database.exec(
      sealed_update(database, "winners", {"session"}, "session NOT IN (SELECT id FROM sessions)"));
  database.exec(sealed_update(database, "energy_winners", {"session"},
                              "session NOT IN (SELECT id FROM sessions)"));
}

/// Removes damaged rows, and sound rows that refer to them and have lost their meaning. The latter
/// are removed first, so that they can be described by what they refer to.
void remove_damaged(SQLite::Database& database, Pruned& pruned) {
  database.exec("PRAGMA defer_foreign_keys = ON");
  for (const auto& [table, condition] : references) {
    auto removed = remove_sound(database, table, condition);
    const auto count = static_cast<std::int64_t>(removed.size());
    if (table == std::string_view("sessions")) pruned.sessions += count;
    if (table == std::string_view("winners")) pruned.winners += count;
    if (table == std::string_view("trials")) pruned.trials += count;
    pruned.orphans.insert(pruned.orphans.end(), std::make_move_iterator(removed.begin()),
                          std::make_move_iterator(removed.end()));
  }
  forget_lost_sessions(database);
  for (const auto& table : sealed_tables(database)) {
    pruned.damaged += database.exec(fmt::format("DELETE FROM main.{} WHERE NOT {}",
                                                identifier(table), is_sound(database, table)));
  }
}

/// Removes devices that nothing refers to but their cards. Damaged rows of cards keep their device.
void remove_unused_devices(SQLite::Database& database, Pruned& pruned) {
  constexpr std::string_view unused = R"( IN (SELECT id FROM devices)
      AND {0} NOT IN (SELECT device FROM main.sessions)
      AND {0} NOT IN (SELECT device FROM main.circumstances)
      AND {0} NOT IN (SELECT device FROM main.ceilings)
      AND {0} NOT IN (SELECT device FROM main.unsafe)
      AND {0} NOT IN (SELECT device FROM main.pins))";
  const auto where = [&](const char* column) {
    return column + fmt::format(fmt::runtime(unused), column);
  };
  database.exec(fmt::format("DELETE FROM main.cards WHERE {} AND {}", where("device"),
                            is_sound(database, "cards")));
  pruned.devices =
      database.exec(fmt::format("DELETE FROM main.devices WHERE {} AND id NOT IN "
                                "(SELECT device FROM main.cards)",
                                where("id")));
}

}  // namespace

// Keeps sessions without an outcome, which may be running. It also keeps damaged rows, unless their
// removal is requested, and the rows that they refer to.
Pruned remove_rows(SQLite::Database& database, const PruneRequest& request) {
  Pruned pruned;
  if (request.damaged) remove_damaged(database, pruned);
  pruned.winners += remove_winners(database, request.winners);
  pruned.trials += remove_trials(database, request);
  database.exec(R"(
    DELETE FROM main.comparisons WHERE (faster, slower) IN (
      SELECT faster, slower FROM comparisons
      WHERE faster NOT IN (SELECT session FROM main.winners WHERE session IS NOT NULL)
        OR slower NOT IN (SELECT session FROM main.winners WHERE session IS NOT NULL)))");
  database.exec(R"(
    DELETE FROM main.finalists WHERE (session, place) IN (
      SELECT f.session, f.place FROM finalists f JOIN sessions s ON s.id = f.session
      WHERE s.outcome IS NOT NULL
        AND f.session NOT IN (SELECT session FROM main.trials)
        AND f.session NOT IN (SELECT session FROM main.winners WHERE session IS NOT NULL)))");
  pruned.sessions += database.exec(R"(
    DELETE FROM main.sessions WHERE id IN (SELECT id FROM sessions WHERE outcome IS NOT NULL)
      AND id NOT IN (SELECT session FROM main.trials)
      AND id NOT IN (SELECT session FROM main.finalists)
      AND id NOT IN (SELECT faster FROM main.comparisons)
      AND id NOT IN (SELECT slower FROM main.comparisons)
      AND id NOT IN (SELECT session FROM main.winners WHERE session IS NOT NULL)
      AND id NOT IN (SELECT session FROM main.energy_winners WHERE session IS NOT NULL))");
  database.exec(R"(
    DELETE FROM main.runs WHERE id IN (SELECT id FROM runs WHERE ended_utc IS NOT NULL)
      AND id NOT IN (SELECT run FROM main.sessions WHERE run IS NOT NULL))");
  database.exec(R"(
    DELETE FROM main.circumstances WHERE id IN (SELECT id FROM circumstances)
      AND id NOT IN (SELECT circumstances FROM main.winners)
      AND id NOT IN (SELECT circumstances FROM main.energy_winners))");
  database.exec(R"(
    DELETE FROM main.problems WHERE id IN (SELECT id FROM problems)
      AND id NOT IN (SELECT problem FROM main.sessions))");
  remove_unused_devices(database, pruned);
  return pruned;
}

}  // namespace greta::db
