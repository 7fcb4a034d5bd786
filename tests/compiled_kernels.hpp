#pragma once

#include <filesystem>

namespace greta::test {

/// Returns the folder of compiled kernels that programs share: compiling them takes most of the
/// time of tests of the pipeline.
inline std::filesystem::path compiled_kernels() {
  return std::filesystem::temp_directory_path() / "greta_test_cache";
}

}  // namespace greta::test
