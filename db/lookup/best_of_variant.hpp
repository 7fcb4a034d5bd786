#pragma once

#include <optional>
#include <string_view>

#include "db/lookup/known_winners.hpp"
#include "db/lookup/lookup.hpp"

namespace greta::db {

/// What Lookup::best_of() asks about: a valid problem on a device, and what databases know.
struct VariantQuestion {
  const Operation& operation;
  const Problem& problem;
  const DeviceInfo& device;
  KnownWinners& known;
  std::optional<Config> untuned;  ///< what a look-up returns for the problem; nothing: it fails
};

/// Implements Lookup::best_of().
Result<BestOfVariant> best_of_variant(const VariantQuestion& question, std::string_view variant,
                                      const UseValues& values);

}  // namespace greta::db
