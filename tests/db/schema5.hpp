#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "db/json.hpp"
#include "db/sqlite/connection.hpp"
#include "db/sqlite/quoting.hpp"
#include "runtime/device/text/hash.hpp"
#include "tests/db/fixture.hpp"
#include "tests/db/unguarded_database.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns a card of the sample model, or of another one.
inline DeviceInfo card(char uuid, const std::string& name = sample_device().name) {
  auto device = sample_device();
  device.name = name;
  device.card = {std::string(32, uuid), std::string("0000:0") + uuid + ":00.0"};
  return device;
}

/// A winner of a card as stored by schema 5.
struct Known {
  DeviceInfo device;
  std::string driver = "driver 1";
  std::int64_t m = 1;
  bool cold = true;
  std::string started = "2026-11-20T12:00:00Z";
  double us = 10;
};

/// Writes a database as GRETA did with schema 5.
class Schema5 {
 public:
  explicit Schema5(const std::filesystem::path& file) : file_(file) {
    ConnectionOptions options;
    options.migrations.resize(5);
    Connection(file, TunedDb::Mode::read_write, options);
    plain_.emplace(file);
  }

  std::int64_t add(const DeviceInfo& device, const std::string& seen = "2026-11-20T12:00:00Z") {
    const auto key = Hash()
                         .add(to_string(device.backend))
                         .add(device.vendor)
                         .add(device.architecture)
                         .add(device.card.uuid)
                         .add(std::uint64_t{device.compute_units})
                         .hex();
    auto& id = devices_[key];
    if (id != 0) return id;
    id = static_cast<std::int64_t>(devices_.size());
    insert("devices", {{"id", std::to_string(id)},
                       {"fingerprint", text_literal(key)},
                       {"name", text_literal(device.name)},
                       {"driver", text_literal(device.driver)},
                       {"info", text_literal(to_json(device).dump())},
                       {"first_seen_utc", text_literal(seen)},
                       {"last_seen_utc", text_literal(seen)}});
    return id;
  }

  /// Adds a session with a trial and its winner. Returns the session.
  std::int64_t add(const Known& known, const std::string& log = "") {
    const auto device = add(known.device), session = ++sessions_;
    const auto key = problem_of(known.m).key();
    auto& problem = problems_[known.m];
    if (problem == 0) {
      problem = static_cast<std::int64_t>(problems_.size());
      insert("problems", {{"id", std::to_string(problem)},
                          {"key", text_literal(key)},
                          {"op", "'gemm'"},
                          {"dtype", "'f16'"},
                          {"out_dtype", "'f32'"},
                          {"dims", text_literal(problem_of(known.m).dims_text())}});
    }
    const std::map<std::string, std::string> origin{{"greta_version", "'0.1.0'"},
                                                    {"started_utc", text_literal(known.started)}};
    const std::map<std::string, std::string> circumstances{{"device", std::to_string(device)},
                                                           {"driver", text_literal(known.driver)},
                                                           {"compiler", "'compiler'"},
                                                           {"template_key", "'templates'"}};
    insert("sessions", circumstances, origin,
           {{"id", std::to_string(session)},
            {"problem", std::to_string(problem)},
            {"opened_as", "'vulkan:0'"},
            {"strategy", "'random'"},
            {"budget", "'60s'"},
            {"seed", "'1'"},
            {"cold", known.cold ? "1" : "0"},
            {"command", "''"},
            {"outcome", "'done'"},
            {"ended_utc", "'then'"}});
    insert("trials", measurement(known.us), verdict(),
           {{"id", std::to_string(session)},
            {"session", std::to_string(session)},
            {"variant", "'naive'"},
            {"status", "'ok'"},
            {"message", "''"},
            {"log", text_literal(log)},
            {"cold", known.cold ? "1" : "0"},
            {"raced", "0"},
            {"content_keys", "''"},
            {"recorded_utc", "'then'"}});
    auto& id = circumstances_[known.driver + std::to_string(device)];
    if (id == 0) {
      id = static_cast<std::int64_t>(circumstances_.size());
      insert("circumstances", circumstances, {{"id", std::to_string(id)}});
    }
    (**plain_).exec(
        fmt::format("DELETE FROM winners WHERE problem = {} AND circumstances = {} AND cold = {}",
                    text_literal(key), id, known.cold ? 1 : 0));
    insert("winners", measurement(known.us), verdict(), origin,
           {{"problem", text_literal(key)},
            {"circumstances", std::to_string(id)},
            {"cold", known.cold ? "1" : "0"},
            {"session", std::to_string(session)},
            {"is_default", "0"},
            {"rounds", "3"},
            {"ties", "'[]'"},
            {"default_samples_us", "'[]'"}});
    return session;
  }

  using Row = std::map<std::string, std::string>;
  void insert(const std::string& table, Row row, const Row& more = {}, const Row& and_more = {},
              const Row& at_last = {}) {
    for (const auto* const part : {&more, &and_more, &at_last}) {
      row.insert(part->begin(), part->end());
    }
    std::string names, values;
    for (const auto& [name, value] : row) {
      names += identifier(name) + ", ";
      values += value + ", ";
    }
    const auto value = [&](const std::string& name) {
      const auto found = row.find(name);
      return found == row.end() ? "NULL" : found->second;
    };
    (*plain_)->exec(fmt::format("INSERT INTO {} ({}checksum) VALUES ({}{})", table, names, values,
                                checksum_of(**plain_, table, value)));
  }
  void exec(const std::string& sql) { (*plain_)->exec(sql); }
  void mark_as_shipped() {
    write_manifest(**plain_);
    exec(
        "PRAGMA journal_mode = DELETE; DROP INDEX winners_by_circumstances;"
        "PRAGMA application_id = 0x47524553");
  }
  void close() { plain_.reset(); }

 private:
  static Row measurement(double us) {
    return {{"config", fmt::format("'naive T={}'", static_cast<int>(us))},
            {"samples_us", fmt::format("'[{}]'", us)},
            {"median_us", fmt::format("{:.1f}", us)},
            {"batch", "1"},
            {"dropped", "0"},
            {"flush_bytes", "0"},
            {"clocks", "''"},
            {"kernels", "'[]'"}};
  }
  static Row verdict() { return {{"passed", "1"}, {"method", "''"}, {"detail", "''"}}; }

  std::filesystem::path file_;
  std::optional<Plain> plain_;
  std::map<std::string, std::int64_t> devices_, circumstances_;
  std::map<std::int64_t, std::int64_t> problems_;
  std::int64_t sessions_ = 0;
};

}  // namespace greta::test
