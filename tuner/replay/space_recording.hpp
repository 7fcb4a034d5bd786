#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/trial.hpp"
#include "tuner/replay/recorded_space.hpp"

namespace greta::tuner {

// GRETA's own format of recordings, to which a line can be appended at a time: the first line is a
// JSON object that describes what is recorded, each further line is one trial. A last line without
// its newline is incomplete and ignored.

/// What the first line says.
struct RecordingHeader {
  std::string version;  ///< of GRETA
  nlohmann::json device;
  std::string problem;                      ///< key
  std::optional<std::string> template_key;  ///< Operation::key(); earlier recordings lack it
  bool cold = true;
  std::uint64_t seed = 0;
  std::uint64_t space_count = 0;          ///< valid configurations
  std::vector<Alternative> alternatives;  ///< parameters and values; constraints are left out

  /// Returns the line with its newline.
  std::string line() const;
};

/// Returns the line of a trial with its newline.
std::string recording_line(const Trial& trial);

/// Returns whether a text begins as a recording of GRETA.
bool is_space_recording(std::string_view text);
/// Throws std::exception with the reason if the text is damaged.
RecordingHeader read_recording_header(std::string_view text);
RecordedSpace read_space_recording(std::string_view text);

}  // namespace greta::tuner
