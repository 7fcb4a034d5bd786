#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/space.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// The outcome of one configuration.
struct RecordedRow {
  Choice choice;                  ///< of the recorded alternatives
  double time_us = 0;             ///< 0 if it failed
  std::optional<Status> failure;  ///< nothing: it was measured
  std::string message;            ///< one line about a failure
};

/// What a recording contains.
struct RecordedSpace {
  std::string device_name;
  // Of GRETA's own recordings:
  std::string problem{};  ///< key; empty in recordings of other tools
  /// The recorded device; nothing if another version of GRETA described it.
  std::optional<DeviceInfo> device{};
  /// Without constraints. Values that are not integers are replaced by their position in ascending
  /// order.
  std::vector<Alternative> alternatives;
  std::vector<RecordedRow> rows;  ///< one per configuration, in the order of the file
  bool completed = false;         ///< whether the end of the file was missing
};

/// Reads a recording: the cache of Kernel Tuner, results in the T4 format, or GRETA's own
/// (recording.hpp). Throws std::exception with the reason if the text is none of them.
RecordedSpace read_recorded_space(std::string text);

}  // namespace greta::tuner
