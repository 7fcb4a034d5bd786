#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"

// A kernel project is a folder to read and to build without GRETA: the source and the binary of a
// winner's kernels, their launches, inputs, expected results, and a C++ program that runs, checks
// and times them. docs/kernel-project.md describes it.

namespace greta::tuner {

/// What was written.
struct WrittenProject {
  std::vector<std::string> kernels;  ///< their sources, relative to the folder
  std::uint64_t bytes = 0;           ///< of all files
};

/// Checks that a project can be written into a folder: it is missing, empty, or, with `replace`, a
/// kernel project. Fails with `invalid_argument`.
Result<void> check_project_folder(const std::filesystem::path& folder, bool replace);

/// Compiles a winner's kernels for its device and writes the project, which appears complete or not
/// at all; its files replace those of an earlier one. HIP kernels need a compiler
/// for the architecture. GLSL kernels with matrix operations need the device itself, whose driver
/// determines their form. Fails with `constraints` if the configuration is not valid with this
/// version's templates, like Device::compile(), like check_fits(), and with `io`.
Result<WrittenProject> write_kernel_project(const Catalog& catalog, const StoredWinner& winner,
                                            const OpenOptions& options,
                                            const std::filesystem::path& folder);

}  // namespace greta::tuner
