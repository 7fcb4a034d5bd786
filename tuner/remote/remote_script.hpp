#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"

/// The scripts of sh that RemoteRun runs on the other machine, and what they say. Folders are
/// absolute and contain only characters that no shell changes; other text reaches the machine in
/// files.
namespace greta::tuner {

/// Returns a word as sh reads it.
std::string quoted(const std::string& word);
/// Whether a folder's name can be part of a script.
bool is_plain_path(const std::string& path);

/// run.sh: runs a command with a build, in the folder of the run.
std::string run_script(const std::vector<std::string>& words, const std::string& build,
                       const std::string& folder);

/// Makes the folder of all, and says where it is and how the command with this key is. `folder`:
/// empty for that of the user's cache.
std::string look_script(const std::string& folder, const std::string& key);
struct RemotePlace {
  std::string folder, system, architecture;
  std::uint64_t free_kib = 0;
  std::string state;                ///< of the command: "none", "runs", "ended" or "stopped"
  std::vector<std::string> builds;  ///< their names
};
Result<RemotePlace> read_look(const std::string& said);

/// Extracts an archive of tar as a build, which gets its name if it is whole and starts.
std::string copy_build_script(const std::string& build);
/// Returns why a build that was copied does not start; empty if it does.
std::string broken_build(const std::string& said);
/// Lists the devices there as JSON.
std::string devices_script(const std::string& build);
/// Returns why no device of such a list is a GPU; empty if one is.
std::string missing_gpu(const std::string& said);
/// Extracts an archive of tar into the folder of a run, and starts run.sh. The archive's folder
/// `new` becomes `outputs`, and `given` to compare with, unless a run that was not brought back
/// wrote there already.
std::string start_script(const std::string& folder);
/// Asks the command to end in good order.
std::string stop_script(const std::string& folder);
/// Writes an archive of the results.
std::string fetch_script(const std::string& folder);
/// Forgets a run that was brought back, or all of it but its database.
std::string finish_script(const std::string& folder, bool is_done);
/// Removes builds and runs. Fails if a command runs.
std::string clean_script(const std::string& base);

/// What was read of a run so far.
struct FollowedState {
  std::uint64_t out_bytes = 0, err_bytes = 0;
  std::string end;  ///< the exit code, or "lost"; empty: it runs
};
/// Writes frames with what the command wrote since then: "O BYTES" and "E BYTES" with standard
/// output and standard error, "K" at times, and "X CODE" at the end.
std::string follow_script(const std::string& folder, const FollowedState& from);
struct Frame {
  char kind;
  std::string content;
};
/// Takes the next complete frame from the begin of a text. What is no frame is removed.
std::optional<Frame> next_frame(std::string& text);

}  // namespace greta::tuner
