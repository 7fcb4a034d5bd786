#pragma once

#include <filesystem>

#include "tuner/bench/health.hpp"
#include "tuner/compile/target_compiler.hpp"

namespace greta::tuner {

/// Writes what is needed to reproduce a configuration that failed on a device into an empty folder:
/// the kernel sources, and in `case` the compiled kernels with their launches and operands
/// (docs/compile.md), in the smaller of the two forms. The device is not opened. The sources are
/// written even if the rest fails. Fails with `invalid_argument` for a problem that has no case
/// form, whose compiled kernels are written as well, and otherwise like compiling.
Result<void> write_failed_choice(const Catalog& catalog, const DeviceInfo& device,
                                 const CheckedChoice& choice, const OpenOptions& options,
                                 const std::filesystem::path& folder);

}  // namespace greta::tuner
