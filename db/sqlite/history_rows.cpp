#include "db/sqlite/history_rows.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/sqlite/checksums.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/counter_rows.hpp"
#include "db/sqlite/device_rows.hpp"
#include "db/sqlite/guard.hpp"
#include "db/sqlite/rows.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::db {
namespace {

/// Columns of sessions that change after its begin, or that are ids of this file. A session that
/// was carried belongs to no run: it goes on in the database that recorded it.
const std::set<std::string> not_of_its_begin{"id",        "device", "problem", "outcome",
                                             "ended_utc", "run",    "plan"};
const std::set<std::string> ids_of_trials{"id", "session"};

std::string name_of(SQLite::Statement& row, int column) {
  return row.getColumnName(column);
}

/// Returns a hash of all values of a row but those of some columns and the checksum.
std::string hash_of(SQLite::Statement& row, const std::set<std::string>& except,
                    const std::string& extra = "") {
  device::Hash hash;
  hash.add(extra);
  for (int i = 0; i < row.getColumnCount(); ++i) {
    const std::string name = name_of(row, i);
    if (name == "checksum" || except.contains(name)) continue;
    const auto value = row.getColumn(i);
    hash.add(name).add(value.isNull() ? "NULL" : "=" + value.getString());
  }
  return hash.hex();
}

/// Copies rows from statements `SELECT *` of a table, with other values for some columns.
class RowCopy {
 public:
  RowCopy(SQLite::Database& into, const std::string& table)
      : columns_(content_columns(into, table)), insert_(into, table, Existing::refused, columns_) {}

  using Changes = std::map<std::string, std::optional<std::int64_t>>;

  void copy(SQLite::Statement& from, const Changes& changes) {
    for (const std::string& name : columns_) {
      const std::string parameter = ":" + name;
      if (const auto change = changes.find(name); change != changes.end()) {
        if (change->second) insert_.row().bind(parameter, *change->second);
        continue;
      }
      const auto value = from.getColumn(name.c_str());
      if (value.isInteger()) {
        insert_.row().bind(parameter, value.getInt64());
      } else if (value.isFloat()) {
        insert_.row().bind(parameter, value.getDouble());
      } else if (!value.isNull()) {
        insert_.row().bind(parameter, value.getString());
      }
    }
    insert_.run();
  }

 private:
  std::vector<std::string> columns_;
  SealedInsert insert_;
};

constexpr const char* select_sessions_with_keys = R"(
    SELECT s.*, d.fingerprint AS of_device, p.key AS of_problem
    FROM sessions s JOIN devices d ON d.id = s.device JOIN problems p ON p.id = s.problem
    ORDER BY s.id)";

/// Returns what identifies a session of a row of the statement above.
std::string key_of_session(SQLite::Statement& row) {
  auto except = not_of_its_begin;
  except.insert({"of_device", "of_problem"});
  return hash_of(row, except, text(row, "of_device") + " " + text(row, "of_problem"));
}

class HistoryCopy {
 public:
  HistoryCopy(SQLite::Database& from, SQLite::Database& into, bool rehearse)
      : from_(from), into_(into), rehearse_(rehearse) {}

  HistoryMerge run() {
    SQLite::Statement known(into_, select_sessions_with_keys);
    while (known.executeStep()) {
      known_.emplace(key_of_session(known), known.getColumn("id").getInt64());
    }
    next_session_ = next_id(into_, "sessions");
    next_trial_ = next_id(into_, "trials");
    SQLite::Statement sessions(from_, select_sessions_with_keys);
    while (sessions.executeStep()) copy_session(sessions);
    copy_comparisons();
    copy_counters();
    if (!rehearse_) link_winners();
    return merged_;
  }

 private:
  static std::vector<std::string> trials_of(SQLite::Database& database, std::int64_t session) {
    SQLite::Statement select(database, "SELECT * FROM trials WHERE session = ? ORDER BY id");
    select.bind(1, session);
    std::vector<std::string> hashes;
    while (select.executeStep()) hashes.push_back(hash_of(select, ids_of_trials));
    return hashes;
  }

  /// A known session, and the hashes of its trials.
  struct Known {
    std::int64_t id = 0;
    std::set<std::string> trials{};
  };

  std::optional<Known> find(const std::string& key, const std::vector<std::string>& trials) {
    const auto [first, last] = known_.equal_range(key);
    for (auto one = first; one != last; ++one) {
      const auto there = trials_of(into_, one->second);
      Known known{one->second, {there.begin(), there.end()}};
      const bool shared = std::any_of(trials.begin(), trials.end(), [&](const std::string& trial) {
        return known.trials.contains(trial);
      });
      if (shared || trials.empty() || there.empty()) return known;
    }
    return std::nullopt;
  }

  void copy_session(SQLite::Statement& row) {
    const auto theirs = row.getColumn("id").getInt64();
    const auto trials = trials_of(from_, theirs);
    const std::string key = key_of_session(row);
    auto known = find(key, trials);
    if (!known) {
      // Nothing happened in it yet, and nothing could identify it later.
      if (trials.empty() && row.getColumn("outcome").isNull()) return;
      known = Known{next_session_++, {}};
      ++merged_.sessions;
      if (!rehearse_) insert_session(row, known->id);
      if (!rehearse_) known_.emplace(key, known->id);
    } else if (!rehearse_) {
      take_outcome(row, known->id);
    }
    ids_[theirs] = known->id;
    copy_trials(theirs, *known);
    if (!rehearse_) copy_finalists(theirs, known->id);
  }

  void insert_session(SQLite::Statement& row, std::int64_t id) {
    const auto problem = Problem::parse(text(row, "of_problem")).value();
    sessions_.copy(row, {{"id", id},
                         {"device", device_row(into_, text(row, "of_device"))},
                         {"problem", put_problem(into_, problem)},
                         {"run", std::nullopt}});
  }

  void take_outcome(SQLite::Statement& row, std::int64_t id) {
    if (row.getColumn("outcome").isNull()) return;
    SQLite::Statement update(
        into_, sealed_update(into_, "sessions", {"outcome", "ended_utc"},
                             "id = :session AND (outcome IS NULL OR ended_utc < :ended_utc)"));
    update.bind(":session", id);
    update.bind(":outcome", text(row, "outcome"));
    update.bind(":ended_utc", text(row, "ended_utc"));
    update.exec();
  }

  void copy_trials(std::int64_t theirs, const Known& known) {
    SQLite::Statement select(from_, "SELECT * FROM trials WHERE session = ? ORDER BY id");
    select.bind(1, theirs);
    while (select.executeStep()) {
      if (known.trials.contains(hash_of(select, ids_of_trials))) continue;
      ++merged_.trials;
      if (!rehearse_) trials_.copy(select, {{"id", next_trial_++}, {"session", known.id}});
    }
  }

  /// A session's finalists are stored together, at its end.
  void copy_finalists(std::int64_t theirs, std::int64_t id) {
    SQLite::Statement there(into_, "SELECT 1 FROM main.finalists WHERE session = ?");
    there.bind(1, id);
    if (there.executeStep()) return;
    SQLite::Statement select(from_, "SELECT * FROM finalists WHERE session = ? ORDER BY place");
    select.bind(1, theirs);
    while (select.executeStep()) finalists_.copy(select, {{"session", id}});
  }

  /// Of counters of the same configuration, the later ones are kept.
  void copy_counters() {
    const auto mine = read_counters(into_);
    for (const StoredCounters& theirs : read_counters(from_)) {
      const bool known = std::any_of(mine.begin(), mine.end(), [&](const StoredCounters& one) {
        return one.device == theirs.device && one.problem == theirs.problem &&
               one.config == theirs.config && one.counters.cold == theirs.counters.cold &&
               one.recorded_utc >= theirs.recorded_utc;
      });
      if (known) continue;
      ++merged_.counters;
      if (!rehearse_) put_counters(into_, theirs);
    }
  }

  void copy_comparisons() {
    SQLite::Statement select(from_, "SELECT * FROM comparisons");
    while (select.executeStep()) {
      const auto faster = ids_.find(select.getColumn("faster").getInt64());
      const auto slower = ids_.find(select.getColumn("slower").getInt64());
      if (faster == ids_.end() || slower == ids_.end()) continue;
      SQLite::Statement same(into_, R"(
        SELECT 1 FROM comparisons WHERE (faster = ?1 AND slower = ?2)
          OR (faster = ?2 AND slower = ?1))");
      same.bind(1, faster->second);
      same.bind(2, slower->second);
      if (same.executeStep()) continue;
      ++merged_.comparisons;
      if (rehearse_) continue;
      comparisons_.copy(select, {{"faster", faster->second}, {"slower", slower->second}});
    }
  }

  /// A merged winner has no session until its session is here.
  void link_winners() {
    SQLite::Statement select(from_, R"(
      SELECT w.problem, w.cold, w.session, w.config, w.started_utc, c.driver, c.compiler,
        c.template_key, d.fingerprint
      FROM winners w JOIN circumstances c ON c.id = w.circumstances
        JOIN devices d ON d.id = c.device WHERE w.session IS NOT NULL)");
    SQLite::Statement update(into_, sealed_update(into_, "winners", {"session"}, R"(
      session IS NULL AND problem = :of AND cold = :cold AND config = :config
        AND started_utc = :started AND circumstances IN (
          SELECT c.id FROM circumstances c JOIN devices d ON d.id = c.device
          WHERE d.fingerprint = :fingerprint AND c.driver = :driver AND c.compiler = :compiler
            AND c.template_key = :template_key))"));
    while (select.executeStep()) {
      const auto session = ids_.find(select.getColumn("session").getInt64());
      if (session == ids_.end()) continue;
      update.bind(":session", session->second);
      update.bind(":of", text(select, "problem"));
      update.bind(":cold", boolean(select, "cold"));
      update.bind(":config", text(select, "config"));
      update.bind(":started", text(select, "started_utc"));
      for (const char* name : {"fingerprint", "driver", "compiler", "template_key"}) {
        update.bind(std::string(":") + name, text(select, name));
      }
      update.exec();
      update.reset();
    }
  }

  SQLite::Database& from_;
  SQLite::Database& into_;
  bool rehearse_;
  RowCopy sessions_{into_, "sessions"}, trials_{into_, "trials"}, finalists_{into_, "finalists"},
      comparisons_{into_, "comparisons"};
  std::multimap<std::string, std::int64_t> known_;  // sessions of `into` by key
  std::map<std::int64_t, std::int64_t> ids_;        // of `from`: ids in `into`
  std::int64_t next_session_ = 0, next_trial_ = 0;
  HistoryMerge merged_;
};

}  // namespace

HistoryMerge copy_history(SQLite::Database& from, SQLite::Database& into, bool rehearse) {
  return HistoryCopy(from, into, rehearse).run();
}

}  // namespace greta::db
