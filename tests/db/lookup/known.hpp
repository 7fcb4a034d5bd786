#pragma once

#include <string>

#include "db/lookup/lookup.hpp"
#include "db/tuned_db.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {

/// A device of this architecture that is not here; devices of different `uuid` are different cards.
DeviceInfo card(const std::string& architecture, const std::string& uuid);

/// `gemm dtype=f32 …`
Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k);

/// A configuration that is valid for any GEMM, another one for each `number` of 0 to 3.
Config plain_config(int number);

/// A certified winner, 1.5 times as fast as the default.
StoredWinner winner(const Problem& problem, const DeviceInfo& device, const Config& config);

/// Databases of a user and of an application, filled and looked up in.
class Databases {
 public:
  /// Adds to the user's.
  void add(const StoredWinner& result);
  /// Writes the shipped one, which holds nothing else.
  void ship(const std::vector<StoredWinner>& results);
  /// What SQL does to the user's, which stays sound as far as SQLite can tell.
  void damage(const std::string& sql);

  TunedDb own() const;
  LookupFiles files() const;
  Lookup open(const DeviceInfo& device, const LookupOptions& options = {}) const;

 private:
  TemporaryFolder folder_;
};

}  // namespace greta::test
