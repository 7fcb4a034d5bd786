#pragma once

#include <cstddef>
#include <filesystem>

#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

// A case as a folder. `case.json` lists the contents and launches (docs/compile.md). Beside it are
// code objects, buffer contents, and expected values and bounds as raw little-endian doubles.

/// Creates the folder of a case if it is missing. Fails with `invalid_argument` if it holds
/// anything but a case, and with `io`.
Result<void> make_case_folder(const std::filesystem::path& folder);

/// Whether a case's folder holds the contents of its buffers, or the seed from which GRETA draws
/// them.
enum class CaseForm { whole, seed };

/// Writes a case into its folder and replaces an existing one. Fails like make_case_folder().
Result<void> write_case(const KernelCase& written, const std::filesystem::path& folder,
                        CaseForm form = CaseForm::whole);

/// Writes or replaces a file. Throws Error with `io`.
void write_bytes(const std::filesystem::path& file, const void* data, std::size_t bytes);

/// Reads either form. Fails with `io` for unreadable files, and with `invalid_argument`, naming the
/// file, for an invalid case.
Result<KernelCase> read_case(const std::filesystem::path& folder);

}  // namespace greta::tuner
