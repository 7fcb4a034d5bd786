#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/result.hpp"
#include "runtime/device/system/temporary_folder.hpp"

namespace greta::tuner {

/// What a machine without GRETA needs to tune and benchmark, in a temporary folder: the programs
/// without symbols, the process that compiles kernels, libraries besides the C library's, presets
/// and the databases that GRETA ships.
struct RemoteBuild {
  device::TemporaryFolder folder;
  std::string hash;          ///< of all files and their names
  std::uint64_t bytes = 0;   ///< of all files
  std::string architecture;  ///< of the programs, as uname -m says it
};

/// Collects a build. `prefix` is an installation or a build folder, with bin/greta-tune. Fails with
/// `io`.
Result<RemoteBuild> collect_build(const std::filesystem::path& prefix);

/// Returns a folder's content as a compressed archive of tar. Fails with `io`.
Result<std::string> archive_of(const std::filesystem::path& folder);
/// Extracts an archive of tar into a folder. Fails with `io`.
Result<void> extract(const std::string& archive, const std::filesystem::path& folder);

}  // namespace greta::tuner
