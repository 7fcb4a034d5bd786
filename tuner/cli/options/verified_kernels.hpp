#pragma once

#include <string>

#include "kernels/described/kernel_file.hpp"
#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner::cli {

/// Keeps the sources of a described kernel, all of whose checks passed, in place of those that
/// passed before: in `verified` of the cache's folder, by the description's path. Sources that
/// failed once are not kept, since checks of other configurations may pass. Warns where that is not
/// possible. Does nothing for GRETA's operations.
void remember_verified(const std::string& operation);
/// Notes that the sources of a described kernel failed, for remember_verified().
void remember_failed(const std::string& operation);

/// Returns the sources that were kept last, as far as a description's are others; none if there are
/// none.
KnownGood last_verified(const KernelFile& file);

}  // namespace greta::tuner::cli
