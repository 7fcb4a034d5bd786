#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

class Connection;

/// The location of a winner, without the winner itself.
struct WinnerPlace {
  std::string_view problem;            ///< key of the problem
  const DeviceInfo* device = nullptr;  ///< as last seen; null if it can't be read
};

/// The cost of a problem without its own winner, as ratios to the winner's time.
struct RecordedCost {
  std::string problem;              ///< key of the problem
  std::optional<double> neighbour;  ///< of the nearest other shape's; nothing: unknown
  std::optional<double> fallback;   ///< of the operation's default; nothing: unknown
};

/// The part of a database that a look-up reads. Errors are those of TunedDb.
class WinnerSource {
 public:
  /// Opens a database for reading, as TunedDb::open() does.
  explicit WinnerSource(const std::filesystem::path& file);
  WinnerSource(WinnerSource&&) noexcept;
  WinnerSource& operator=(WinnerSource&&) noexcept;
  ~WinnerSource();

  const std::filesystem::path& file() const;

  /// Calls `visit` with the problem and the device of each result, cold or warm, in no particular
  /// order. Results of readable devices that are not `wanted` are left out; if there are no others,
  /// only devices are read. A problem occurs twice if two sets of circumstances have a result. This
  /// is fast because nothing else is read. Therefore it also visits damaged results, which find()
  /// does not return. The arguments are valid only during the call.
  void for_each(bool cold, const std::function<bool(const DeviceInfo&)>& wanted,
                const std::function<void(const WinnerPlace&)>& visit) const;
  /// Does the same as TunedDb::find_winner(), but prefers the driver and compiler of `present`, the
  /// device that asks, to those of the stored device as last seen. Returns a result of a vendor's
  /// library only where that library is open, and is faster than any other.
  std::optional<StoredWinner> find(const std::string& device_fingerprint,
                                   const std::string& problem_key, bool cold,
                                   const DeviceInfo& present) const;
  /// Does the same as TunedDb::fastest_configs() for all recorded configurations.
  std::vector<Config> fastest_configs(const std::string& device_fingerprint,
                                      const std::string& problem_key, bool cold) const;
  /// Returns the costs, without their own winners, of an operation's problems that have results on
  /// a device.
  std::vector<RecordedCost> recorded_costs(const std::string& device_fingerprint,
                                           const std::string& op, bool cold) const;
  /// Returns the kernel of this name that the database carries, or nothing.
  std::optional<CarriedKernel> kernel(const std::string& name) const;
  /// Returns the compiled kernel with this content key for a target, or nothing. Throws Error if it
  /// is damaged.
  std::optional<CarriedBinary> binary(const std::string& content, const std::string& target) const;
  /// Returns whether there is a compiled kernel for a target, damaged or not. Reads none of them.
  bool has_binaries(const std::string& target) const;
  /// Does the same as TunedDb::unsafe().
  std::vector<UnsafePart> unsafe(const DeviceInfo& device) const;

 private:
  std::unique_ptr<Connection> connection_;
};

}  // namespace greta::db
