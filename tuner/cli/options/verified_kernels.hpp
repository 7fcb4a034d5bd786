#pragma once

#include <string>

#include "kernels/described/kernel_file.hpp"
#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner::cli {

/// Keeps the sources of a described kernel, all of whose checks passed, in place of those that
/// passed before: in `verified` of the cache's folder, by the description's path. Warns where that
/// is not possible. Does nothing for GRETA's operations.
void remember_verified(const std::string& operation);

/// Returns the sources that were kept last, as far as a description's are others; none if there are
/// none.
KnownGood last_verified(const KernelFile& file);

}  // namespace greta::tuner::cli
