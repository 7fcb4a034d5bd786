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

/// That there is a winner, and where.
struct WinnerPlace {
  std::string_view problem;            ///< key
  const DeviceInfo* device = nullptr;  ///< as last seen; null where what is stored can't be read
};

/// What a problem would cost if it had not been tuned, as times over its winner's.
struct RecordedCost {
  std::string problem;              ///< key
  std::optional<double> neighbour;  ///< the nearest other shape's winner; nothing: nobody looked
  double fallback = 1;              ///< the operation's default
};

/// What a look-up reads of a database. Errors are TunedDb's.
class WinnerSource {
 public:
  /// Opens for reading, as TunedDb::open.
  explicit WinnerSource(const std::filesystem::path& file);
  WinnerSource(WinnerSource&&) noexcept;
  WinnerSource& operator=(WinnerSource&&) noexcept;
  ~WinnerSource();

  const std::filesystem::path& file() const;
  bool shipped() const;

  /// Names the problem and the device of each result, cold or warm, in no order; twice where two
  /// sets of circumstances have one. Fast: reads nothing else of them, so that a damaged one is
  /// named as well, which find() does not find. What is named is valid during the call.
  void for_each(bool cold, const std::function<void(const WinnerPlace&)>& visit) const;
  /// As TunedDb::find_winner.
  std::optional<StoredWinner> find(const std::string& device_fingerprint,
                                   const std::string& problem_key, bool cold) const;
  /// What the problems of an operation that have results on a device would cost otherwise.
  std::vector<RecordedCost> recorded_costs(const std::string& device_fingerprint,
                                           const std::string& op, bool cold) const;
  /// As TunedDb::unsafe. A shipped database has none.
  std::vector<UnsafePart> unsafe(const DeviceInfo& device) const;

 private:
  std::unique_ptr<Connection> connection_;
};

}  // namespace greta::db
