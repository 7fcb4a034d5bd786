#pragma once

#include <string>
#include <vector>

#include "db/trial.hpp"
#include "tuner/session/session_work.hpp"

namespace greta::tuner {

/// Returns what a vendor's library says of the algorithm of a trial with these kernels:
/// "algorithm 66, tile 128x256, stages 64x3, 1 slice"; empty if it says nothing.
std::string algorithm_text(const std::vector<KernelFigures>& kernels);

/// Sets result.vendor: verifies and times the first algorithms of the vendor's ranking, the fastest
/// of them with other slices of K, too, then the
/// fastest beside the winner and the default in interleaved rounds. Stores its time as a peer's,
/// and with SessionOptions::allow_vendor, if it is significantly faster than the winner, as a
/// winner whose compiler is the library. Does nothing where no library is open, where the operation
/// has no vendor_variant, and on a CPU unless the vendor is allowed. Takes up to a tenth of the
/// budget, at least a second.
void compare_with_vendor(SessionWork& work);

}  // namespace greta::tuner
