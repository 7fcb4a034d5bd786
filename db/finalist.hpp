#pragma once

#include <optional>
#include <vector>

#include "kernels/model/config.hpp"

namespace greta::db {

/// Why a finalist took no part in the rounds to their end.
enum class Departure {
  slower,           ///< it was significantly slower than the fastest
  failed,           ///< it failed while it was timed, or in the last check
  slower_elsewhere  ///< it was not faster than the default in another process
};

/// A finalist of a session, and its times in interleaved rounds. us[i] of all finalists belong to
/// one round; one that left before the end has fewer.
struct Finalist {
  Config config;
  std::vector<double> us{};
  int batch = 1;  ///< number of launches averaged in each time
  bool is_default = false;
  std::optional<Departure> left{};  ///< nothing: it stayed to the end

  bool operator==(const Finalist&) const = default;
};

}  // namespace greta::db
