#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "db/sqlite/checksums.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns sample_problem() with another m.
inline Problem problem_of(std::int64_t m) {
  auto problem = sample_problem();
  problem.dims[0].second = m;
  return problem;
}

/// Adds a session with three trials and a winner, like greta-tune.
inline void tune(TunedDb& db, std::int64_t m, double us) {
  auto session = sample_session();
  session.problem = problem_of(m);
  session.run = db.begin_run({"request", 1, "test", "then"});
  const auto id = db.begin_session(session);
  for (int i = 0; i < 3; ++i) db.add_trial(id, sample_trial(std::to_string(i)));
  auto winner = sample_winner();
  winner.measurement.median_us = us;
  db.set_winner(id, winner);
  db.set_finalists(id, sample_finalists());
  db.end_session(id, "done");
  db.end_run(session.run);
}

/// Adds rows to every table with checksums except config_forms.
inline void fill(const std::filesystem::path& file) {
  auto db = TunedDb::open(file, TunedDb::Mode::read_write);
  for (int m = 1; m <= 4; ++m) tune(db, m, 10 * m);
  tune(db, 1, 11);
  db.set_comparison({1, 5, 1.1, 1.0, 1.2, 0.95, {1, 2}, {3, 4}});
  db.set_ceilings(sample_device(), {{"copy_gbps", 1000, 1, "d", "then"}, {"fma", 5, 1, "d", "t"}});
  db.set_unsafe(sample_device(), {"f16", "timeout", "killed", "", "then"});
  const Energy energy{
      .joules = 1, .low = 0.9, .high = 1.1, .watts = 300, .us = 3000, .source = "counter"};
  db.set_energy_winner(1, {.config = sample_winner().config,
                           .is_default = false,
                           .energy = energy,
                           .default_energy = energy,
                           .card = "GPU-1"});
  db.set_counters(sample_device(), problem_of(1).key(), sample_winner().config,
                  {.source = "counters", .passes = 1, .figures = {{"l2_bytes", 64}}}, 10);
  db.pin({problem_of(4).key(), sample_device().fingerprint(), sample_winner().cold});
  Contents peers;
  peers.peers.push_back({problem_of(1), "library", "versions", "kernel", 5, "then"});
  peers.kernels.push_back({"mine", "mine.jsonc", {{"mine.jsonc", "{}"}}, "then"});
  peers.binaries.push_back(
      {"c0ffee", "gfx942", "gemm/naive", "clang 22", {std::byte{1}, std::byte{2}}, "then"});
  db.write(peers);
}

/// Opens the file like any other program, without guards.
class Plain {
 public:
  explicit Plain(const std::filesystem::path& file)
      : database_(file, SQLite::OPEN_READWRITE, 10'000) {
    add_checksum_function(database_);
    database_.exec("PRAGMA ignore_check_constraints = ON");
  }
  SQLite::Database& operator*() { return database_; }
  SQLite::Database* operator->() { return &database_; }

  std::int64_t damaged() {
    std::int64_t rows = 0;
    for (const auto& table : sealed_tables(database_)) {
      rows += database_
                  .execAndGet(fmt::format("SELECT count(*) FROM {} WHERE NOT {}", table,
                                          is_sound(database_, table)))
                  .getInt64();
    }
    return rows;
  }
  /// Returns the checksums that rows have or would have, of the intact rows or of the damaged ones.
  std::set<std::int64_t> contents(bool sound) {
    std::set<std::int64_t> sums;
    const auto stored = [](const std::string& name) { return '"' + name + '"'; };
    for (const auto& table : sealed_tables(database_)) {
      SQLite::Statement select(
          database_,
          fmt::format("SELECT {} FROM {} WHERE {} {}", checksum_of(database_, table, stored), table,
                      sound ? "" : "NOT", is_sound(database_, table)));
      while (select.executeStep()) sums.insert(select.getColumn(0).getInt64());
    }
    return sums;
  }

 private:
  SQLite::Database database_;
};

}  // namespace greta::test
