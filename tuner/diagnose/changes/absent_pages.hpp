#pragma once

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Supplies pages of zeros where kernels on this processor access memory that is not there, so that
/// they don't end the process. Other faults are left to the handler before.
///
/// The idea is that of failure-oblivious computing: M. Rinard et al.: Enhancing server availability
/// and security through failure-oblivious computing, OSDI 2004.
class AbsentPages {
 public:
  /// Begins to supply pages, until the process ends.
  static void supply();
  /// Takes the pages away again, after all kernels have ended. Returns whether there were any.
  static bool take_away();
};

}  // namespace greta::tuner
