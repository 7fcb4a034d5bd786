#include "tests/db/lookup/lookup_fixture.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/layers.hpp"

namespace greta::test {
namespace {

Contents contents_of(const std::vector<StoredWinner>& results) {
  Contents contents;
  for (const auto& result : results) {
    const auto seen = std::any_of(contents.devices.begin(), contents.devices.end(),
                                  [&](const StoredDevice& device) {
                                    return device.info.fingerprint() == result.device.fingerprint();
                                  });
    if (!seen)
      contents.devices.push_back({result.device, "2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z"});
  }
  contents.results = results;
  return contents;
}

}  // namespace

DeviceInfo card(const std::string& architecture, const std::string& uuid) {
  DeviceInfo device = architecture_info(architecture).value();
  device.name = architecture + " " + uuid;
  device.driver = "driver 1";
  device.compiler = "compiler 1";
  device.card.uuid = uuid;
  return device;
}

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {"gemm", DType::f32, DType::f32, {}, {{"m", m}, {"n", n}, {"k", k}}};
}

Config plain_config(int number) {
  return {"naive", {{"THREADS", 64 << number}}};
}

StoredWinner winner(const Problem& problem, const DeviceInfo& device, const Config& config) {
  StoredWinner result;
  result.problem = problem;
  result.device = device;
  result.provenance = {"0.1.0", "templates", device.driver, device.compiler,
                       "2026-11-20T12:00:00Z"};
  result.winner.config = config;
  result.winner.default_us = 15;
  result.winner.speedup = 1.5;
  result.winner.speedup_low = 1.4;
  result.winner.speedup_high = 1.6;
  result.winner.rounds = 11;
  result.winner.measurement.median_us = 10;
  result.winner.verdict.passed = true;
  return result;
}

void Databases::add(const StoredWinner& result) {
  auto db = TunedDb::open(folder_ / "own.db", TunedDb::Mode::read_write);
  db.write(contents_of({result}));
}

void Databases::add_application(const std::vector<StoredWinner>& results) {
  application_.push_back(folder_ / fmt::format("application_{}.db", application_.size()));
  TunedDb::ship(contents_of(results), application_.back());
}

void Databases::ship(const std::vector<StoredWinner>& results) {
  std::map<std::string, std::vector<StoredWinner>> of;
  for (const auto& result : results) of[result.device.architecture].push_back(result);
  for (const auto& [architecture, some] : of) {
    std::filesystem::create_directories(shipped_file(architecture).parent_path());
    TunedDb::ship(contents_of(some), shipped_file(architecture));
  }
}

std::filesystem::path Databases::shipped_file(const std::string& architecture) const {
  return folder_ / "tuned" / architecture / "model.db";
}

void Databases::damage(const std::string& sql) {
  SQLite::Database(folder_ / "own.db", SQLite::OPEN_READWRITE).exec(sql);
}

TunedDb Databases::own() const {
  return TunedDb::open(folder_ / "own.db", TunedDb::Mode::read_write);
}

LookupFiles Databases::files() const {
  LookupFiles files = LookupFiles::none();
  if (std::filesystem::exists(folder_ / "own.db")) files.own = folder_ / "own.db";
  files.application = application_;
  if (std::filesystem::exists(folder_ / "tuned")) files.shipped = folder_ / "tuned";
  return files;
}

Lookup Databases::open(const DeviceInfo& device, const LookupOptions& options) const {
  return Lookup::open(device, files(), options);
}

}  // namespace greta::test
