#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"

namespace greta::device {

/// What counts: a library or an extension of the driver, and the GPU in its words.
struct CounterSource {
  std::string name;  ///< "CUPTI 13.0", "rocprofiler-sdk 0.6", "VK_KHR_performance_query"
  std::string chip;  ///< "GH100"; empty if it has no name of its own for the GPU
  bool operator==(const CounterSource&) const = default;
};

/// The counters of a piece of work.
struct CounterReading {
  CounterSource source;
  /// Values by the source's own names. Names that the GPU lacks are not in it.
  std::map<std::string, double> values;
  int passes = 0;  ///< number of times that the work ran, since a GPU counts only a few at a time
};

/// Work to count.
struct CountedWork {
  Stream* stream = nullptr;
  /// Records what is to run before each pass and is not counted, as a cache flush. May be empty.
  std::function<Result<void>(Stream&)> prepare;
  /// Records the counted work. It runs once in each pass, so it must give the same counts again.
  std::function<Result<void>(Stream&)> record;
  Deadline deadline = std::chrono::seconds(60);  ///< for one pass
};

/// Reads a device's hardware counters. Counting may slow down the whole process, even between two
/// readings, so that nothing is timed in a process that has opened one.
class CounterReader {
 public:
  virtual ~CounterReader() = default;
  virtual const CounterSource& source() const = 0;
  /// Counts the work in as many passes as these counters need. Names that the GPU lacks are left
  /// out. Fails with `unavailable` if the driver does not permit it or has none of the counters,
  /// and otherwise like the stream's calls.
  virtual Result<CounterReading> read(const std::vector<std::string>& names,
                                      const CountedWork& work) = 0;
};

/// A device with hardware counters. Devices of APIs that have them implement it.
class HardwareCounters {
 public:
  virtual ~HardwareCounters() = default;
  /// Fails with `unavailable` and the reason: the library is missing, or the driver permits no
  /// counters.
  virtual Result<std::unique_ptr<CounterReader>> open_counters() = 0;
};

/// Opens the counters of a device that was opened with OpenOptions::counters. Fails with
/// `unavailable` and one line on why there are none.
Result<std::unique_ptr<CounterReader>> open_counters(Device& device);

}  // namespace greta::device
