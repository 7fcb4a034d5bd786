#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tuner/cli/options/result_options.hpp"

namespace greta::tuner::cli {

/// What `greta-db export --kernel` writes, and where.
struct KernelExport {
  const ResultOptions& results;
  std::filesystem::path folder;
  std::vector<std::string> problem;  ///< words: "gemm", "m=4096"; empty: all problems
  bool force = false;                ///< replace a kernel project
};

/// Checks the folder and the problem's operation. Throws CommandError.
void check_kernel_export(const KernelExport& options);

/// Writes the kernels of the selected results: of one into the folder, of several into a folder in
/// it for each. Returns the exit code. Throws CommandError.
int export_kernels(const TunedDb& db, const KernelExport& options, const ResultFilter& filter);

/// Returns a file name for a text: other characters than letters and digits become '-'.
std::string file_name(const std::string& text);

/// Returns the kernels of the users that results are about, for --with-kernels. Throws CommandError
/// if one is not known.
std::vector<CarriedKernel> carried_kernels(const std::vector<StoredWinner>& results);

}  // namespace greta::tuner::cli
