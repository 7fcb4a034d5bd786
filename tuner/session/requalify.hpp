#pragma once

#include <optional>

#include "tuner/session/session.hpp"

namespace greta::tuner {

/// The outcome for a result whose driver, compiler or templates changed.
struct Requalification {
  /// Whether the compiled kernels are unchanged since certification, so that the result remains
  /// valid.
  bool stands = false;
  std::size_t compiled = 0;   ///< number of configurations compiled and verified again
  std::size_t unchanged = 0;  ///< number of these with identical kernels
  /// The stored winner for the current driver and compiler: the old one, or that of new rounds.
  /// Empty if no configuration is correct any more, or after a stop.
  std::optional<Winner> winner;
  std::vector<std::string> notes;
};

/// Returns whether equal content keys mean equal binaries under different drivers. They don't if
/// the driver itself compiles the code that GRETA passes to it.
bool keys_outlive_drivers(const DeviceInfo& device);

/// Compiles and verifies the default, the winner and the five best recorded configurations again.
/// If all content keys are unchanged, stores the result for the current driver and compiler as it
/// is. Otherwise times and certifies these configurations in interleaved rounds, as at the end of a
/// session. Everything is recorded as a session in `db`.
Requalification requalify(Evaluator& evaluator, TunedDb& db, const StoredWinner& result,
                          const SessionOptions& options, SessionObserver& observer,
                          const std::atomic<bool>& stop);

}  // namespace greta::tuner
