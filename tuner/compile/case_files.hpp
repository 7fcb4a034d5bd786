#pragma once

#include <cstddef>
#include <filesystem>

#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

// A case as a folder: `case.json` says what there is and how to launch it (docs/compile.md), beside
// it lie code objects, the buffers' contents, expected values and bounds as raw little-endian
// doubles.

/// Makes the folder of a case where it is missing. Fails with `invalid_argument` for one that holds
/// anything but a case, and with `io`.
Result<void> make_case_folder(const std::filesystem::path& folder);

/// What a case's folder holds of its buffers: all, or the seed that GRETA draws them from.
enum class CaseForm { whole, seed };

/// Writes a case into its folder, in place of the one that may be there. Failures as
/// make_case_folder().
Result<void> write_case(const KernelCase& written, const std::filesystem::path& folder,
                        CaseForm form = CaseForm::whole);

/// Writes a file, in place of the one that may be there. Throws Error with `io`.
void write_bytes(const std::filesystem::path& file, const void* data, std::size_t bytes);

/// Reads either form. Fails with `io` for files that can't be read, and with `invalid_argument`,
/// naming the file, for what is no case.
Result<KernelCase> read_case(const std::filesystem::path& folder);

}  // namespace greta::tuner
