#include "db/winner_source.hpp"

#include <algorithm>
#include <unordered_map>

#include "db/json.hpp"
#include "db/sqlite/binary_rows.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/connection.hpp"
#include "db/sqlite/kernel_rows.hpp"
#include "db/sqlite/rows.hpp"
#include "db/sqlite/winner_rows.hpp"

namespace greta::db {
namespace {

/// The devices of circumstances by the circumstances' ids; null if a device can't be read. Damaged
/// rows are not included.
using Devices = std::unordered_map<std::int64_t, std::shared_ptr<const DeviceInfo>>;

std::shared_ptr<const DeviceInfo> read_info(SQLite::Statement& row) {
  try {
    return std::make_shared<const DeviceInfo>(device_from_json(json(row, "info")));
  } catch (const Error&) {
    return nullptr;
  }
}

Devices read_devices_of_circumstances(SQLite::Database& database) {
  std::unordered_map<std::int64_t, std::shared_ptr<const DeviceInfo>> by_id;
  Devices devices;
  SQLite::Statement select(database, R"(
    SELECT c.id, c.device, d.info FROM circumstances c JOIN devices d ON d.id = c.device)");
  while (select.executeStep()) {
    const auto [found, is_new] = by_id.try_emplace(select.getColumn(1).getInt64());
    if (is_new) found->second = read_info(select);
    devices.emplace(select.getColumn(0).getInt64(), found->second);
  }
  return devices;
}

}  // namespace

WinnerSource::WinnerSource(const std::filesystem::path& file)
    : connection_(std::make_unique<Connection>(file, TunedDb::Mode::read_only)) {}
WinnerSource::WinnerSource(WinnerSource&&) noexcept = default;
WinnerSource& WinnerSource::operator=(WinnerSource&&) noexcept = default;
WinnerSource::~WinnerSource() = default;

const std::filesystem::path& WinnerSource::file() const {
  return connection_->file();
}

void WinnerSource::for_each(bool cold, const std::function<bool(const DeviceInfo&)>& wanted,
                            const std::function<void(const WinnerPlace&)>& visit) const {
  connection_->read([&](SQLite::Database& database) {
    const Devices devices = read_devices_of_circumstances(database);
    const auto is_wanted = [&](const std::shared_ptr<const DeviceInfo>& device) {
      return !device || wanted(*device);
    };
    std::unordered_map<const DeviceInfo*, bool> answers;
    for (const auto& [id, device] : devices) answers.try_emplace(device.get(), is_wanted(device));
    const bool any = std::any_of(answers.begin(), answers.end(),
                                 [](const auto& answer) { return answer.second; });
    const auto rows = database.execAndGet("SELECT count(*) FROM main.circumstances").getInt64();
    if (!any && static_cast<std::size_t>(rows) == devices.size()) return;
    SQLite::Statement select(database,
                             "SELECT circumstances, problem FROM main.winners WHERE cold = ?");
    select.bind(1, cold);
    std::optional<std::int64_t> last;
    const DeviceInfo* device = nullptr;
    while (select.executeStep()) {
      const auto circumstances = select.getColumn(0).getInt64();
      if (circumstances != last) {
        const auto found = devices.find(circumstances);
        device = found == devices.end() ? nullptr : found->second.get();
        last = circumstances;
      }
      if (device != nullptr && !answers.at(device)) continue;
      const auto problem = select.getColumn(1);
      const std::string_view key(problem.getText(), static_cast<std::size_t>(problem.getBytes()));
      visit({key, device});
    }
  });
}

std::optional<StoredWinner> WinnerSource::find(const std::string& device_fingerprint,
                                               const std::string& problem_key, bool cold,
                                               const DeviceInfo& present) const {
  std::vector<StoredWinner> found;
  connection_->read([&](SQLite::Database& database) {
    found = read_winners(database, device_fingerprint, problem_key, cold, &present);
  });
  if (found.empty()) return std::nullopt;
  const Winner& first = found.front().winner;
  const auto vendor = std::find_if(found.begin(), found.end(), [&](const StoredWinner& stored) {
    return is_of_vendor(stored.winner) && present.has_library(stored.provenance.compiler);
  });
  const bool faster =
      vendor != found.end() &&
      (is_of_vendor(first) || vendor->winner.measurement.median_us < first.measurement.median_us);
  return std::move(faster ? *vendor : found.front());
}

std::vector<Config> WinnerSource::fastest_configs(const std::string& device_fingerprint,
                                                  const std::string& problem_key, bool cold) const {
  constexpr int all = -1;
  std::vector<Config> configs;
  connection_->read([&](SQLite::Database& database) {
    configs = read_fastest_configs(database, device_fingerprint, problem_key, cold, all);
  });
  return configs;
}

std::vector<RecordedCost> WinnerSource::recorded_costs(const std::string& device_fingerprint,
                                                       const std::string& op, bool cold) const {
  std::vector<RecordedCost> costs;
  connection_->read([&](SQLite::Database& database) {
    SQLite::Statement select(database, R"(
      SELECT w.problem, w.regret, w.speedup, w.default_us, w.is_default
      FROM winners w JOIN circumstances c ON c.id = w.circumstances
        JOIN devices d ON d.id = c.device
      WHERE d.fingerprint = :fingerprint AND w.cold = :cold
        AND w.problem > :op || ' ' AND w.problem < :op || '!')");  // '!' follows ' '
    select.bind(":fingerprint", device_fingerprint);
    select.bind(":cold", cold);
    select.bind(":op", op);
    while (select.executeStep()) {
      RecordedCost cost;
      cost.problem = text(select, "problem");
      if (!select.getColumn("regret").isNull()) cost.neighbour = real(select, "regret");
      Winner winner;
      winner.is_default = boolean(select, "is_default");
      winner.default_us = real(select, "default_us");
      winner.speedup = winner.is_default ? 1 : real(select, "speedup");
      if (has_ratio(winner)) cost.fallback = winner.speedup;
      costs.push_back(std::move(cost));
    }
  });
  return costs;
}

std::vector<UnsafePart> WinnerSource::unsafe(const DeviceInfo& device) const {
  std::vector<UnsafePart> parts;
  connection_->read(
      [&](SQLite::Database& database) { parts = read_unsafe_parts(database, device); });
  return parts;
}

std::optional<CarriedBinary> WinnerSource::binary(const std::string& content,
                                                  const std::string& target) const {
  std::optional<CarriedBinary> found;
  connection_->read(
      [&](SQLite::Database& database) { found = read_binary(database, content, target); });
  return found;
}

bool WinnerSource::has_binaries(const std::string& target) const {
  bool found = false;
  connection_->read([&](SQLite::Database& database) {
    SQLite::Statement select(database, "SELECT 1 FROM main.binaries WHERE target = ? LIMIT 1");
    select.bind(1, target);
    found = select.executeStep();
  });
  return found;
}

std::optional<CarriedKernel> WinnerSource::kernel(const std::string& name) const {
  std::optional<CarriedKernel> found;
  connection_->read([&](SQLite::Database& database) { found = read_kernel(database, name); });
  return found;
}

}  // namespace greta::db
