#pragma once

#include <filesystem>

#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner {

/// Returns the version of a case's kernel that a path names: a folder, whose files count by their
/// paths, or a file. A file counts for the one of the kernel's files with whose path its own ends,
/// or that has its name, or else that has most lines in common with it, half of them at least.
/// Fails with `invalid_argument` and one line if the path is not of the kernel, or has no
/// difference, and with `io`.
Result<KnownGood> known_good_at(const FailedCase& failed, const std::filesystem::path& path);

}  // namespace greta::tuner
