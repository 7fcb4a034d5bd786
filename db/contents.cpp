#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "db/merge.hpp"
#include "db/sqlite/binary_rows.hpp"
#include "db/sqlite/checksums.hpp"
#include "db/sqlite/connection.hpp"
#include "db/sqlite/device_rows.hpp"
#include "db/sqlite/history_rows.hpp"
#include "db/sqlite/kernel_rows.hpp"
#include "db/sqlite/migrations.hpp"
#include "db/sqlite/rows.hpp"
#include "db/sqlite/run_rows.hpp"
#include "db/sqlite/tuned_db_impl.hpp"
#include "db/sqlite/winner_rows.hpp"

namespace greta::db {
namespace {

namespace fs = std::filesystem;

/// Writes contents; `packed` selects the form of shipped databases.
void write_contents(SQLite::Database& database, const Contents& contents, bool packed) {
  for (const auto& device : contents.devices) put_device(database, device);
  ResultWriter writer(database, packed);
  for (auto result : contents.results) {
    result.session = 0;  // the sessions are in another database
    writer.write(result);
  }
  for (const auto& [fingerprint, ceiling] : contents.ceilings) {
    put_ceiling(database, device_row(database, fingerprint), ceiling);
  }
  for (const auto& [fingerprint, part] : contents.unsafe) {
    put_unsafe(database, device_row(database, fingerprint), part);
  }
  for (const auto& peer : contents.peers) put_peer(database, peer);
  for (const auto& kernel : contents.kernels) put_kernel(database, kernel);
  for (const auto& binary : contents.binaries) put_binary(database, binary);
}

Contents read_contents(SQLite::Database& database) {
  Contents contents;
  contents.devices = read_devices(database);
  SQLite::Statement results(database, select_all_winners());
  contents.results = WinnerReader(database).read_all(results);
  for (const auto& device : contents.devices) {
    const auto fingerprint = device.info.fingerprint();
    SQLite::Statement ceilings(database, select_ceilings);
    ceilings.bind(":fingerprint", fingerprint);
    while (ceilings.executeStep()) {
      contents.ceilings.push_back({fingerprint, read_ceiling(ceilings)});
    }
    for (auto& part : read_unsafe_parts(database, fingerprint)) {
      contents.unsafe.push_back({fingerprint, std::move(part)});
    }
  }
  SQLite::Statement peers(database, select_peers);
  while (peers.executeStep()) contents.peers.push_back(read_peer(peers));
  contents.pins = read_pins(database);
  contents.kernels = read_kernels(database);
  return contents;
}

Contents without_raw_data(Contents contents) {
  for (auto& result : contents.results) {
    result.winner.measurement.samples_us.clear();
    result.winner.default_samples_us.clear();
    result.winner.kernels.clear();
    // Further digits are noise.
    for (auto& tie : result.winner.ties) {
      tie.ratio_to_winner = std::stod(fmt::format("{:.6g}", tie.ratio_to_winner));
    }
  }
  return contents;
}

/// A temporary file beside a file. It is removed at the end, with SQLite's own files.
class Draft {
 public:
  Draft(const fs::path& file, std::string_view what)
      : path_(file.string() + "." + std::string(what) + std::to_string(getpid())) {
    remove();
  }
  ~Draft() { remove(); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  const fs::path& path() const { return path_; }

 private:
  void remove() const {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
      fs::remove(path_.string() + suffix, ignored);
    }
  }
  fs::path path_;
};

}  // namespace

Contents TunedDb::contents() const {
  Contents contents;
  impl_->connection.read([&](SQLite::Database& database) { contents = read_contents(database); });
  return contents;
}

Merge TunedDb::merge(const Contents& theirs) {
  Merge merged;
  impl_->connection.write([&](SQLite::Database& database) {
    merged = db::merge(read_contents(database), theirs);
    write_contents(database, merged.write, false);
  });
  return merged;
}

HistoryMerge TunedDb::merge_history(const TunedDb& theirs, bool rehearse) {
  HistoryMerge merged;
  const auto copy = [&](SQLite::Database& into) {
    theirs.impl_->connection.read(
        [&](SQLite::Database& from) { merged = copy_history(from, into, rehearse); });
  };
  rehearse ? impl_->connection.read(copy) : impl_->connection.write(copy);
  return merged;
}

void TunedDb::write(const Contents& contents) {
  impl_->connection.write(
      [&](SQLite::Database& database) { write_contents(database, contents, false); });
}

std::optional<std::string> TunedDb::content_keys(const StoredWinner& result,
                                                 const Config& config) const {
  std::optional<std::string> keys;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(
        database,
        select_trials_like("t.content_keys", "t.content_keys <> '' ORDER BY t.id DESC LIMIT 1"));
    bind_trials_like(select, result, config);
    if (select.executeStep()) keys = select.getColumn(0).getString();
  });
  return keys;
}

std::optional<double> TunedDb::recorded_us(const StoredWinner& result, const Config& config) const {
  std::optional<double> us;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(
        database, select_trials_like("min(t.median_us)", "t.status = 'ok' AND t.median_us > 0"));
    bind_trials_like(select, result, config);
    if (select.executeStep() && !select.getColumn(0).isNull()) us = select.getColumn(0).getDouble();
  });
  return us;
}

void TunedDb::set_regrets(const std::vector<StoredWinner>& results) {
  impl_->connection.write([&](SQLite::Database& database) {
    for (const auto& result : results) put_regret(database, result);
  });
}

void TunedDb::ship(const Contents& contents, const fs::path& file) {
  const Draft loose(file, "loose");
  const Draft compact(file, "compact");
  {
    Connection connection(loose.path(), Mode::read_write);
    connection.write([&](SQLite::Database& database) {
      write_contents(database, without_raw_data(contents), true);
      write_manifest(database);
      database.exec(fmt::format("DROP INDEX {}", unshipped_index));
    });
    connection.write_shipped(compact.path());
  }
  std::error_code error;
  fs::permissions(compact.path(),
                  fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read, error);
  if (!error) fs::rename(compact.path(), file, error);
  if (error) throw Error(file.string() + ": " + error.message());
  const auto found = open(file, Mode::read_only).check();
  if (!found.empty()) throw Error(file.string() + ": not as it was written: " + found.front());
}

}  // namespace greta::db
