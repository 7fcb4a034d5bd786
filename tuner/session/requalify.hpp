#pragma once

#include <optional>

#include "tuner/session/session.hpp"

namespace greta::tuner {

/// What became of a result whose driver, compiler or templates changed.
struct Requalification {
  /// The compiled kernels are the same as when it was certified: it stands as it is.
  bool stands = false;
  std::size_t compiled = 0;   ///< configurations that were compiled and verified again
  std::size_t unchanged = 0;  ///< of these, with the same kernels
  /// The winner in the circumstances of now, stored: the old one, or that of new rounds. Nothing
  /// where no configuration is right any more, or it was stopped.
  std::optional<Winner> winner;
  std::vector<std::string> notes;
};

/// Whether equal content keys mean equal binaries although the driver is another one: not where the
/// driver itself compiles what GRETA hands it.
bool keys_outlive_drivers(const DeviceInfo& device);

/// Compiles and verifies the default, the winner and the five best that are recorded once more.
/// Where all have the content keys they had, the result is stored under the present circumstances
/// as it is; otherwise these are timed anew and certified in interleaved rounds, as at the end of a
/// session. Everything is a session in `db`.
Requalification requalify(Evaluator& evaluator, TunedDb& db, const StoredWinner& result,
                          const SessionOptions& options, SessionObserver& observer,
                          const std::atomic<bool>& stop);

}  // namespace greta::tuner
