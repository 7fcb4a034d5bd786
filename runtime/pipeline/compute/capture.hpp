#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "runtime/device/result.hpp"

namespace greta::runtime {

class Runtime;

/// A problem that an application ran.
struct CapturedProblem {
  Problem problem;
  std::uint64_t count = 0;  ///< number of runs
  /// Time of all runs, estimated from the mean of the timed ones. 0 if none was timed.
  double device_us = 0;

  bool operator==(const CapturedProblem&) const = default;
};

/// The problems that an application ran on a device.
struct Capture {
  std::string device;       ///< name
  std::string fingerprint;  ///< DeviceInfo::fingerprint()
  std::string greta_version;
  std::vector<CapturedProblem> problems;
};

/// Version of the file format. The first line is {"greta_capture": 1, "device": …, "fingerprint":
/// …, "greta": …}, and each further line {"problem": key, "count": n, "device_us": t}.
constexpr int capture_version = 1;
/// Maximum size of a capture file in bytes.
constexpr std::uint64_t most_capture_bytes = std::uint64_t{64} << 20;

/// Returns what ran on a runtime while its telemetry was on, the longest total time first.
Capture captured(Runtime& runtime);
/// Writes a capture as JSON lines and replaces the file atomically. Fails with `io`, also if the
/// path exists and is not a regular file.
Result<void> write_capture(const std::filesystem::path& file, const Capture& capture);
/// Reads a capture and checks every line. A failure names the file, the line and the error.
/// Problems must be valid for the catalog's operations.
Result<Capture> read_capture(const std::filesystem::path& file, const Catalog& catalog);

}  // namespace greta::runtime
