#pragma once

#include <filesystem>

#include "tuner/bench/health.hpp"
#include "tuner/compile/target_compiler.hpp"

namespace greta::tuner {

/// Writes what a configuration that failed on a device was made of into an empty folder: its
/// kernels' sources, and in `case` the compiled kernels with their launches and operands
/// (docs/compile.md), in whichever form is small. The device is not opened. Sources are there even
/// where the rest fails: with `invalid_argument` for a problem that there are no cases of, where
/// compiled kernels are there as well, else as compiling does.
Result<void> write_failed_choice(const Catalog& catalog, const DeviceInfo& device,
                                 const CheckedChoice& choice, const OpenOptions& options,
                                 const std::filesystem::path& folder);

}  // namespace greta::tuner
