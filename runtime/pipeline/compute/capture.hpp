#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "runtime/device/result.hpp"

namespace greta::runtime {

class Runtime;

/// A problem that an application asked for.
struct CapturedProblem {
  Problem problem;
  std::uint64_t count = 0;  ///< how often it ran
  double device_us = 0;     ///< all runs together, by the mean of those timed; 0 where none was

  bool operator==(const CapturedProblem&) const = default;
};

/// What an application asked a device for.
struct Capture {
  std::string device;       ///< name
  std::string fingerprint;  ///< DeviceInfo::fingerprint()
  std::string greta_version;
  std::vector<CapturedProblem> problems;
};

/// Version of the file's form: its first line is {"greta_capture": 1, "device": …, "fingerprint":
/// …, "greta": …}, each further line {"problem": key, "count": n, "device_us": t}.
constexpr int capture_version = 1;
/// Bytes that a file of a capture may have.
constexpr std::uint64_t most_capture_bytes = std::uint64_t{64} << 20;

/// What ran on a runtime while its telemetry was on, the longest time first.
Capture captured(Runtime& runtime);
/// Writes a capture as JSON lines, the whole file at once by a rename. Fails with `io`, also for
/// what is there and no regular file.
Result<void> write_capture(const std::filesystem::path& file, const Capture& capture);
/// Reads a capture. Every line is checked; a failure names the file, the line and what is wrong
/// there. Problems must be such as the catalog's operations take.
Result<Capture> read_capture(const std::filesystem::path& file, const Catalog& catalog);

}  // namespace greta::runtime
