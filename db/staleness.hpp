#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"

namespace greta::db {

/// Judges results one by one: whether what they were found with is still what there is. A stale
/// result is not wrong, but its time and its rank may have changed.
class StalenessJudge {
 public:
  /// `present`: devices of this machine, which are asked instead of what the database saw last.
  explicit StalenessJudge(Catalog catalog, const std::vector<DeviceInfo>& present = {});

  /// One line for each thing that differs: the device's driver, its compiler, the operation's
  /// templates (those of the catalog). Empty: the result is fresh.
  std::vector<std::string> reasons(const StoredWinner& result);

 private:
  const std::string& template_key(const std::string& op);

  Catalog catalog_;
  std::map<std::string, DeviceInfo> present_;         // by fingerprint
  std::map<std::string, std::string> template_keys_;  // by operation; computed once each
};

}  // namespace greta::db
