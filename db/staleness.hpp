#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"

namespace greta::db {

/// Judges whether results are stale: whether the driver, the compiler and the templates are still
/// those that a result was found with. A stale result is not wrong, but its time and its rank may
/// have changed.
class StalenessJudge {
 public:
  /// `present` holds the devices of this machine. They are used instead of what the database last
  /// saw. If several drivers serve a card, a result is compared with that which it was found with.
  explicit StalenessJudge(Catalog catalog, const std::vector<DeviceInfo>& present = {});

  /// Returns one line for each difference: the device's driver, its compiler, the operation's
  /// templates (those of the catalog). The result is fresh if there are none.
  std::vector<std::string> reasons(const StoredWinner& result);

 private:
  const std::string& template_key(const std::string& op);
  /// Returns the device of this machine that the result is compared with, or else its own.
  const DeviceInfo& device_of(const StoredWinner& result) const;

  Catalog catalog_;
  std::multimap<std::string, DeviceInfo> present_;    // by fingerprint
  std::map<std::string, std::string> template_keys_;  // by operation; each is computed once
};

}  // namespace greta::db
