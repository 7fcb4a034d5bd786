#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "db/lookup/winner_index.hpp"
#include "db/winner_source.hpp"

namespace greta::db {

/// The winners of a device and of others of its architecture, in all databases of a look-up. The
/// index is read at once; each winner is read when it is first needed.
class KnownWinners {
 public:
  KnownWinners(const DeviceInfo& device, const LookupFiles& files, const LookupOptions& options);

  /// A problem and the representative of its bucket, which is used to compute distances.
  struct Asked {
    const Problem& problem;
    const Problem& representative;
  };
  struct Found {
    StoredWinner winner;
    MigratedConfig usable;  ///< as used on this device
    LookupOrigin origin = LookupOrigin::exact;
    bool other_shape = false;
    bool implies_default = false;  ///< it gains too little: `usable` is the problem's default
    bool forbids_more = false;     ///< of the problem without its permissions
    DatabaseLevel level = DatabaseLevel::own;
    std::filesystem::path database;
  };
  /// Whether a configuration is one of those that are asked for. Empty: each is.
  using Wanted = std::function<bool(const Config&)>;
  /// Returns the nearest winner for a problem. If its rows are not packed, it also searches the
  /// winners for packed rows, and if something is fused into it, those without. This device comes
  /// first, then the same shape, then the same attributes. If there is none for a problem that
  /// permits something, it returns the one for the problem without permissions.
  std::optional<Found> find(const Operation& operation, const Asked& asked,
                            const DeviceInfo& device, const Wanted& wanted = {});
  /// Returns the fastest configuration that any database recorded for the problem on this device
  /// and that is wanted and valid, whether or not it was certified; of several databases, that of
  /// the first one with any.
  std::optional<Config> fastest(const Problem& problem, const DeviceInfo& device,
                                const Wanted& wanted);

  /// Does the same as WinnerSource::recorded_costs() for this device and all databases.
  std::vector<RecordedCost> recorded_costs(const std::string& op);
  /// Returns the kernel of this name of the first database that carries it, or nothing.
  std::optional<CarriedKernel> kernel(const std::string& name);
  /// Returns the compiled kernel with this content key for the first of these targets that a
  /// database carries, or nothing. A damaged one is noted and left out.
  std::optional<CarriedBinary> binary(const std::string& content,
                                      const std::vector<std::string>& targets);
  /// Does the same as Lookup::has_binaries().
  bool has_binaries(const std::vector<std::string>& targets);
  /// Does the same as TunedDb::unsafe().
  std::vector<UnsafePart> unsafe(const DeviceInfo& device);
  /// Returns a line for each item that was ignored because it could not be read.
  const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  struct Device {
    std::string fingerprint;
    bool is_this_one = false;
  };
  struct Layer {
    WinnerSource source;
    DatabaseLevel level;
  };
  struct Candidate;
  /// Returns the nearest winner of `like`, which is the problem with or without its permissions,
  /// and of problems that differ from it by strides and by what is fused.
  std::optional<Found> find_family(const Operation& operation, const Asked& asked,
                                   const Asked& like, const DeviceInfo& device,
                                   const Wanted& wanted);
  /// Returns the nearest winner of problems like `other`, which is the requested one or differs
  /// from it only in some attributes, whose configuration, as carried_over(), is valid for
  /// `device`. Winners are ordered by device, with this one first; by distance, with the same
  /// problem first and none beyond most_shape_distance; by shape, with the smaller first by the
  /// first dimension that differs; and by database, in the order of LookupFiles. Returns nothing if
  /// none of the nearest 64 is usable. The configuration is also valid for the bucket's
  /// representative, unless the problem itself has a winner. Only a winner of the requested problem
  /// is exact.
  std::optional<Found> find_like(const Asked& asked, const Asked& other, const DeviceInfo& device,
                                 const Wanted& wanted);
  void add_layer(const std::filesystem::path& file, DatabaseLevel level, const DeviceInfo& device);
  void add_shipped(const std::filesystem::path& folder, const DeviceInfo& device);
  void note(std::string why);
  template <typename Read>
  void read_each(Read read);
  void read_index(std::size_t layer, const DeviceInfo& device);
  std::vector<Candidate> nearest(const Problem& problem, const Problem& representative,
                                 const WinnerIndex::Family& family) const;
  std::optional<StoredWinner> read(const Problem& problem, WinnerIndex::Place place,
                                   const DeviceInfo& present);

  Catalog catalog_;
  bool cold_;
  std::vector<Layer> layers_;    // the first one takes precedence
  std::vector<Device> devices_;  // the first one is this device
  WinnerIndex index_;
  std::vector<std::string> unreadable_;
};

}  // namespace greta::db
