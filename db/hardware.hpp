#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// Groups the devices of a database that are views of one hardware model through different APIs.
/// Two devices are, if vendor and number of compute units agree and both have the same card: one
/// with the same PCI address, or with the same UUID where one of them has no address. A device that
/// acts as a GPU on the CPU is a group of its own. A device may be listed several times, with other
/// cards each time. Groups that have a device in common are one.
class HardwareGroups {
 public:
  explicit HardwareGroups(const std::vector<StoredDevice>& devices);
  /// Whether two devices are in one group. A device that is not in the database is equal only to
  /// those with its fingerprint.
  bool same(const DeviceInfo& a, const DeviceInfo& b) const;

 private:
  std::map<std::string, std::size_t> groups_;  // by fingerprint
};

/// Sorts the winners of a problem on one hardware model, fastest first. `measured` holds
/// comparisons in alternating turns; winners without one are compared by their certified intervals.
HardwareWinners rank_winners(std::vector<StoredWinner> winners,
                             const std::vector<Comparison>& measured);

}  // namespace greta::db
