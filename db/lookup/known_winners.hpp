#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "db/lookup/winner_index.hpp"
#include "db/winner_source.hpp"

namespace greta::db {

/// The winners of a device and of others of its architecture, in the user's database and in the
/// shipped one. Which there are is read at once; each one itself when it is first wanted.
class KnownWinners {
 public:
  KnownWinners(const DeviceInfo& device, const LookupFiles& files, const LookupOptions& options);

  /// A problem, and that of its bucket, which stands for it in distances.
  struct Asked {
    const Problem& problem;
    const Problem& representative;
  };
  struct Found {
    StoredWinner winner;
    Config config;  ///< as it is used here
    LookupOrigin origin = LookupOrigin::exact;
    bool other_shape = false;
    bool shipped = false;
  };
  /// The nearest winner whose configuration, as carried_over(), is valid for `device`: this
  /// device's before other devices', then by distance, the same problem first and none beyond
  /// most_shape_distance; then the smaller shape, by the first dimension that differs; then the
  /// user's before the shipped one. Nothing where none of the nearest 64 serves. Unless the problem
  /// itself has a winner, the configuration is valid for its bucket, too.
  std::optional<Found> find(const Asked& asked, const DeviceInfo& device) {
    return find(asked, asked, device);
  }
  /// The same among the winners of problems like `other`, the one that was asked for but for some
  /// attributes; none is exact.
  std::optional<Found> find(const Asked& asked, const Asked& other, const DeviceInfo& device);

  /// As WinnerSource::recorded_costs on this device, of both databases.
  std::vector<RecordedCost> recorded_costs(const std::string& op) const;
  /// As TunedDb::unsafe.
  std::vector<UnsafePart> unsafe(const DeviceInfo& device) const;
  /// What could not be read and was left out, a line each.
  const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  struct Device {
    std::string fingerprint;
    bool is_this_one = false;
  };
  struct Candidate;
  void read_index(std::size_t layer, const DeviceInfo& device);
  std::vector<Candidate> nearest(const Problem& problem, const Problem& representative,
                                 const WinnerIndex::Family& family) const;
  std::optional<StoredWinner> read(const Problem& problem, WinnerIndex::Place place);

  Catalog catalog_;
  bool cold_;
  std::vector<WinnerSource> layers_;  // the first one wins
  std::vector<Device> devices_;       // the first one is this one
  WinnerIndex index_;
  std::vector<std::string> unreadable_;
};

}  // namespace greta::db
