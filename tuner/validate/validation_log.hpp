#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "runtime/device/result.hpp"
#include "tuner/validate/findings.hpp"

/// The file in which all processes of a run write what Vulkan's validation layer says: a JSON
/// object on each line, appended at once.
namespace greta::tuner {

/// From now on, each Vulkan device that this process opens uses the validation layer, whose
/// messages are appended to a file. Fails with `io` if the file can't be opened.
Result<void> write_validation_log(const std::filesystem::path& file);

/// What such a file has.
struct ValidationLog {
  Findings findings;
  std::map<std::string, std::size_t> opened;  ///< times that each device was opened: "vulkan:0" → 3
  std::size_t processes = 0;                  ///< that opened a device
};

/// Reads the file. Lines that are incomplete, because a process was killed, are skipped.
Result<ValidationLog> read_validation_log(const std::filesystem::path& file);

}  // namespace greta::tuner
