#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device {

/// Environment variables ("NAME=value") with which a program must be started so that a device can
/// be opened in it with OpenOptions::sanitize: they load the sanitizers' runtime that belongs to
/// the C++ compiler (empty: the one that hip-host finds by itself) ahead of everything else. A
/// report then goes to standard error and ends the program with SIGABRT. Fails with `unavailable`
/// where there is no such compiler, or no runtime beside it.
Result<std::vector<std::string>> sanitizer_environment(const std::filesystem::path& compiler);

/// The one line of a sanitizer's report that says what is wrong and where; empty where there is no
/// report in `output`.
std::string sanitizer_summary(std::string_view output);

}  // namespace greta::device
