#pragma once

#include <filesystem>

#include "tuner/compile/kernel_case.hpp"

namespace greta {

// A case as a folder: `case.json` says what there is and how to launch it (docs/compile.md), beside
// it lie code objects, the buffers' contents, expected values and bounds as raw little-endian
// doubles.

/// Writes a case into a folder, which is made where it is missing; a case that is there is
/// replaced. Fails with `invalid_argument` for a folder that holds something else, and with `io`.
Result<void> write_case(const KernelCase& written, const std::filesystem::path& folder);

/// Fails with `io` for files that can't be read, and with `invalid_argument`, naming the file, for
/// what is no case.
Result<KernelCase> read_case(const std::filesystem::path& folder);

}  // namespace greta
