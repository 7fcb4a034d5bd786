#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device {

/// Returns the environment variables ("NAME=value") that a program must be started with so that it
/// can open a device with OpenOptions::sanitize. They load the sanitizer runtime of the C++
/// compiler (empty: the compiler that hip-host finds) before everything else. A sanitizer report
/// then goes to standard error and ends the program with SIGABRT. Fails with `unavailable` if there
/// is no such compiler, or if it has no runtime.
Result<std::vector<std::string>> sanitizer_environment(const std::filesystem::path& compiler);

/// Returns the line of a sanitizer's report that describes the error and its location, or an empty
/// string if `output` contains no report.
std::string sanitizer_summary(std::string_view output);

}  // namespace greta::device
