#pragma once

#include "tuner/session/session_work.hpp"

namespace greta::tuner {

/// Sets result.vendor: verifies and times the first algorithms of the vendor's ranking, then the
/// fastest beside the winner and the default in interleaved rounds. Stores its time as a peer's,
/// and with SessionOptions::allow_vendor, if it is significantly faster than the winner, as a
/// winner whose compiler is the library. Does nothing where no library is open, where the operation
/// has no vendor_variant, and on a CPU unless the vendor is allowed. Takes up to a tenth of the
/// budget, at least a second.
void compare_with_vendor(SessionWork& work);

}  // namespace greta::tuner
