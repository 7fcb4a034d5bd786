#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/result.hpp"
#include "tuner/validate/findings.hpp"

/// NVIDIA's compute-sanitizer, which runs a program and its child processes and reports wrong
/// accesses of kernels and failed calls of the CUDA API.
namespace greta::tuner {

/// Its tools. The first one is the default.
constexpr std::array<std::string_view, 4> sanitizer_tools{"memcheck", "racecheck", "initcheck",
                                                          "synccheck"};

/// Returns the program from a list of folders as in PATH, or else from where CUDA is installed.
std::optional<std::filesystem::path> find_compute_sanitizer(std::string_view path);

/// Returns the command line that runs a command with all its child processes under a tool. Its
/// reports go to files in a folder.
std::vector<std::string> sanitizer_command(const std::filesystem::path& program,
                                           std::string_view tool,
                                           const std::filesystem::path& folder,
                                           const std::vector<std::string>& command);

struct SanitizerReports {
  Findings findings;      ///< by kind, as "Invalid __global__ write of size 4 bytes"
  std::size_t files = 0;  ///< 0: nothing ran under compute-sanitizer
};

/// Reads the reports in a folder.
Result<SanitizerReports> read_sanitizer_reports(const std::filesystem::path& folder);
/// Adds the reports of a text.
void read_sanitizer_text(std::string_view text, Findings& findings);

}  // namespace greta::tuner
