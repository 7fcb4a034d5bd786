#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "db/tuned_db.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {

/// Returns a device of this architecture that this machine lacks. A different `uuid` is a different
/// card.
DeviceInfo card(const std::string& architecture, const std::string& uuid);

/// Returns `gemm dtype=f32 …`.
Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k);

/// Returns a configuration that is valid for any GEMM, a different one for each `number` from 0 to
/// 3.
Config plain_config(int number);

/// Returns a certified winner that is 1.5 times as fast as the default.
StoredWinner winner(const Problem& problem, const DeviceInfo& device, const Config& config);

/// The databases of a user, of an application and of GRETA with their lookup.
class Databases {
 public:
  /// Adds a winner to the user's database.
  void add(const StoredWinner& result);
  /// Adds a database of the application below those before it, with exactly these winners.
  void add_application(const std::vector<StoredWinner>& results);
  /// Writes GRETA's databases with exactly these winners, one for each architecture.
  void ship(const std::vector<StoredWinner>& results);
  /// Changes the user's database with SQL, so that SQLite itself finds no damage.
  void damage(const std::string& sql);

  TunedDb own() const;
  LookupFiles files() const;
  Lookup open(const DeviceInfo& device, const LookupOptions& options = {}) const;

  /// Returns GRETA's database of an architecture.
  std::filesystem::path shipped_file(const std::string& architecture) const;

 private:
  TemporaryFolder folder_;
  std::vector<std::filesystem::path> application_;
};

}  // namespace greta::test
