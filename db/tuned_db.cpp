#include "db/tuned_db.hpp"

#include <algorithm>
#include <utility>

#include "db/enum_text.hpp"
#include "db/hardware.hpp"
#include "db/sqlite/binary_rows.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/device_rows.hpp"
#include "db/sqlite/finalist_rows.hpp"
#include "db/sqlite/pruning.hpp"
#include "db/sqlite/rows.hpp"
#include "db/sqlite/tuned_db_impl.hpp"
#include "db/sqlite/winner_rows.hpp"

namespace greta::db {

namespace {

/// Reads the stored comparisons of these winners with any others.
std::vector<Comparison> read_comparisons(SQLite::Database& database,
                                         const std::vector<StoredWinner>& winners) {
  std::vector<Comparison> comparisons;
  SQLite::Statement select(database, select_comparisons);
  for (const auto& winner : winners) {
    if (winner.session == 0) continue;
    select.bind(":session", winner.session);
    while (select.executeStep()) comparisons.push_back(read_comparison(select));
    select.reset();
  }
  return comparisons;
}

}  // namespace

TunedDb::TunedDb(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TunedDb::TunedDb(TunedDb&&) noexcept = default;
TunedDb& TunedDb::operator=(TunedDb&&) noexcept = default;
TunedDb::~TunedDb() = default;

TunedDb TunedDb::open(const std::filesystem::path& file, Mode mode) {
  Connection connection(file, mode);
  RunLocks runs(connection.file());
  return TunedDb(std::make_unique<Impl>(Impl{std::move(connection), std::move(runs), {}}));
}

int TunedDb::schema_version() {
  return migrations().back().version;
}

const std::filesystem::path& TunedDb::file() const {
  return impl_->connection.file();
}

int TunedDb::file_schema() const {
  return impl_->connection.schema();
}

bool TunedDb::shipped() const {
  return impl_->connection.shipped();
}

std::int64_t TunedDb::begin_session(const SessionRecord& session) {
  std::int64_t id = 0;
  impl_->connection.write(
      [&](SQLite::Database& database) { id = insert_session(database, session); });
  return id;
}

void TunedDb::add_trial(std::int64_t session, const Trial& trial) {
  auto& writer = impl_->trials;
  try {
    impl_->connection.write([&](SQLite::Database& database) {
      if (!writer) writer.emplace(database);
      writer->insert(session, trial);
    });
  } catch (...) {
    writer.reset();  // a statement that failed can't be used again
    throw;
  }
}

void TunedDb::set_finalists(std::int64_t session, const std::vector<Finalist>& finalists) {
  impl_->connection.write(
      [&](SQLite::Database& database) { put_finalists(database, session, finalists); });
}

std::vector<Finalist> TunedDb::finalists(std::int64_t session) const {
  std::vector<Finalist> all;
  impl_->connection.read(
      [&](SQLite::Database& database) { all = read_finalists(database, session); });
  return all;
}

void TunedDb::end_session(std::int64_t session, const std::string& outcome) {
  impl_->connection.write(
      [&](SQLite::Database& database) { finish_session(database, session, outcome); });
}

bool TunedDb::set_winner(std::int64_t session, const Winner& winner) {
  bool stored = false;
  impl_->connection.write(
      [&](SQLite::Database& database) { stored = put_winner(database, session, winner); });
  return stored;
}

std::vector<Config> TunedDb::fastest_configs(const std::string& device_fingerprint,
                                             const std::string& problem_key, bool cold,
                                             int most) const {
  std::vector<Config> configs;
  impl_->connection.read([&](SQLite::Database& database) {
    configs = read_fastest_configs(database, device_fingerprint, problem_key, cold, most);
  });
  return configs;
}

std::vector<CarriedKernel> TunedDb::kernels() const {
  std::vector<CarriedKernel> kernels;
  impl_->connection.read([&](SQLite::Database& database) { kernels = read_kernels(database); });
  return kernels;
}

std::vector<BinaryTotals> TunedDb::binaries() const {
  std::vector<BinaryTotals> totals;
  impl_->connection.read(
      [&](SQLite::Database& database) { totals = read_binary_totals(database); });
  return totals;
}

std::optional<StoredWinner> TunedDb::find_winner(const std::string& device_fingerprint,
                                                 const std::string& problem_key, bool cold) const {
  auto found = find_winners(device_fingerprint, problem_key, cold);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::vector<StoredWinner> TunedDb::find_winners(const std::string& device_fingerprint,
                                                const std::string& problem_key, bool cold) const {
  std::vector<StoredWinner> found;
  impl_->connection.read([&](SQLite::Database& database) {
    found = read_winners(database, device_fingerprint, problem_key, cold);
  });
  return found;
}

Question question_of(const StoredWinner& result) {
  return {result.problem.key(), result.device.fingerprint(), result.winner.cold};
}

bool is_of_vendor(const Winner& winner) {
  return winner.config.variant == kernels::vendor_variant;
}

bool has_ratio(const Winner& winner) {
  return winner.is_default || (winner.default_us > 0 && winner.speedup > 0);
}

std::vector<StoredWinner> TunedDb::winners() const {
  return latest(results());
}

std::vector<StoredWinner> TunedDb::results() const {
  std::vector<StoredWinner> all;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(database, select_all_winners());
    all = WinnerReader(database).read_all(select);
  });
  return all;
}

void TunedDb::set_comparison(const Comparison& comparison) {
  impl_->connection.write(
      [&](SQLite::Database& database) { put_comparison(database, comparison); });
}

HardwareWinners TunedDb::find_winners_of_hardware(const DeviceInfo& device,
                                                  const std::string& problem_key, bool cold) const {
  HardwareWinners found;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(database, select_problem_winners());
    select.bind(":key", problem_key);
    select.bind(":cold", cold);
    auto winners = latest(WinnerReader(database).read_all(select));
    auto devices = read_devices(database);
    devices.push_back({device, {}, {}, {{device.card, {}, {}}}});
    const HardwareGroups hardware(devices);
    std::erase_if(
        winners, [&](const StoredWinner& winner) { return !hardware.same(winner.device, device); });
    const auto comparisons = read_comparisons(database, winners);
    found = rank_winners(std::move(winners), comparisons);
  });
  return found;
}

std::vector<HardwareWinners> TunedDb::winners_by_hardware() const {
  std::vector<std::vector<StoredWinner>> groups;
  std::vector<HardwareWinners> all;
  impl_->connection.read([&](SQLite::Database& database) {
    const HardwareGroups hardware(read_devices(database));
    SQLite::Statement select(database, select_all_winners());
    for (auto& winner : latest(WinnerReader(database).read_all(select))) {
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& members) {
        const StoredWinner& one = members.front();
        return one.problem == winner.problem && one.winner.cold == winner.winner.cold &&
               hardware.same(one.device, winner.device);
      });
      if (group != groups.end()) {
        group->push_back(std::move(winner));
      } else {
        groups.emplace_back().push_back(std::move(winner));
      }
    }
    for (auto& group : groups) {
      const auto comparisons = read_comparisons(database, group);
      all.push_back(rank_winners(std::move(group), comparisons));
    }
  });
  return all;
}

void TunedDb::set_ceilings(const DeviceInfo& device, const std::vector<Ceiling>& ceilings) {
  impl_->connection.write([&](SQLite::Database& database) {
    const auto id = put_device(database, device);
    for (Ceiling ceiling : ceilings) {
      ceiling.card = device.card.uuid;
      put_ceiling(database, id, ceiling);
    }
  });
}

void TunedDb::put_peer(const Peer& peer) {
  impl_->connection.write([&](SQLite::Database& database) { db::put_peer(database, peer); });
}

void TunedDb::set_unsafe(const DeviceInfo& device, const UnsafePart& part) {
  impl_->connection.write([&](SQLite::Database& database) {
    UnsafePart stored = part;
    stored.driver = device.driver;
    stored.card = device.card.uuid;
    put_unsafe(database, put_device(database, device), stored);
  });
}

void TunedDb::clear_unsafe(const DeviceInfo& device, const std::string& check) {
  impl_->connection.write([&](SQLite::Database& database) {
    SQLite::Statement remove(database, R"(
      DELETE FROM main.unsafe WHERE driver = :driver AND health_check = :check AND card = :card
        AND device IN (SELECT id FROM devices WHERE fingerprint = :fingerprint))");
    remove.bind(":driver", device.driver);
    remove.bind(":check", check);
    remove.bind(":card", device.card.uuid);
    remove.bind(":fingerprint", device.fingerprint());
    remove.exec();
  });
}

std::vector<UnsafePart> TunedDb::unsafe(const DeviceInfo& device) const {
  std::vector<UnsafePart> parts;
  impl_->connection.read(
      [&](SQLite::Database& database) { parts = read_unsafe_parts(database, device); });
  return parts;
}

std::vector<Ceiling> TunedDb::ceilings(const std::string& device_fingerprint) const {
  std::vector<Ceiling> all;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(database, select_ceilings);
    select.bind(":fingerprint", device_fingerprint);
    while (select.executeStep()) {
      auto ceiling = read_ceiling(select);  // the latest of a kind comes first
      if (all.empty() || all.back().kind != ceiling.kind) all.push_back(std::move(ceiling));
    }
  });
  return all;
}

std::vector<Trial> TunedDb::trials(std::int64_t session) const {
  std::vector<Trial> all;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(database, select_trials);
    select.bind(":session", session);
    while (select.executeStep()) all.push_back(read_trial(select));
  });
  return all;
}

Pruned TunedDb::prune(const PruneRequest& request, bool rehearse) {
  Pruned pruned;
  impl_->connection.write([&](SQLite::Database& database) {
    database.exec("SAVEPOINT prune");
    pruned = remove_rows(database, request);
    if (rehearse) database.exec("ROLLBACK TO prune");
    database.exec("RELEASE prune");
  });
  return pruned;
}

void TunedDb::compact() {
  impl_->connection.compact();
}

std::vector<StoredSession> TunedDb::sessions() const {
  std::vector<StoredSession> all;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(database, select_sessions);
    while (select.executeStep()) all.push_back(read_session(select));
  });
  return all;
}

std::vector<StoredDevice> TunedDb::devices() const {
  std::vector<StoredDevice> all;
  impl_->connection.read([&](SQLite::Database& database) { all = read_devices(database); });
  return all;
}

TunedDb::Counts TunedDb::counts() const {
  Counts counts;
  impl_->connection.read([&](SQLite::Database& database) {
    SQLite::Statement select(database, R"(
      SELECT (SELECT count(*) FROM devices),
        (SELECT count(*) FROM (SELECT key FROM problems UNION SELECT problem FROM winners)),
        (SELECT count(*) FROM sessions), (SELECT count(*) FROM trials),
        (SELECT count(*) FROM winners), (SELECT count(*) FROM cards))");
    select.executeStep();
    counts = {select.getColumn(0).getInt64(), select.getColumn(1).getInt64(),
              select.getColumn(2).getInt64(), select.getColumn(3).getInt64(),
              select.getColumn(4).getInt64(), select.getColumn(5).getInt64()};
  });
  return counts;
}

}  // namespace greta::db
