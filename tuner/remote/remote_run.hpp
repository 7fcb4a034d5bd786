#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"
#include "runtime/device/system/temporary_folder.hpp"
#include "tuner/remote/remote_build.hpp"
#include "tuner/remote/remote_machine.hpp"

namespace greta::tuner {

/// A command of GRETA's that runs on another machine.
struct RemoteCommand {
  /// An argument: text, or a file of this machine, whose copy there is named in its place. In front
  /// of a file, `text` is what is joined to it: "--csv=".
  struct Word {
    std::string text;
    std::filesystem::path file{};
    /// The file is written there and comes back; if it exists here, it is taken along.
    bool is_output = false;
    /// Files that the file names, relative to its folder, which are taken along.
    std::vector<std::filesystem::path> beside{};
  };
  std::string program = "greta-tune";  ///< or "greta-bench"
  std::vector<Word> words;             ///< without --db
  std::filesystem::path database;      ///< what a new run begins with; empty: nothing
  /// The command names no device, so that it would run on a CPU where there is no GPU.
  bool needs_gpu = false;
};

/// What the caller shows of a run.
struct RemoteEvents {
  std::function<void(const std::string& line)> say;
  /// What the command there wrote to standard output and standard error.
  std::function<void(std::string_view)> output, errors;
  std::function<void()> on_stop;  ///< a stop was seen, and the command there was asked to end
};

/// How a run ended, and its files on this machine.
struct RemoteResult {
  int exit_code = 0;
  device::TemporaryFolder folder;
  std::filesystem::path database;  ///< empty: there is none
};

/// Runs commands on a machine. They go on there if the line is lost, and are found again by the
/// same command. Everything is below one folder of the machine:
///
/// - builds/HASH, a build;
/// - builds/HASH.part.MACHINE.PID, a build that the process copies;
/// - runs/KEY, a command: run.sh, copies of its files, out and err, pid while it runs, exit at its
///   end. Its database stays until a command that finished was brought back.
class RemoteRun {
 public:
  /// `folder` is relative to the home folder there, or absolute; empty: the user's cache. `stop`
  /// asks the command there to end in good order. A line that is lost once the machine was reached
  /// is taken up again for `patience`.
  RemoteRun(RemoteMachine machine, std::string folder, RemoteEvents events,
            const std::atomic<bool>& stop, std::chrono::seconds patience);

  /// Looks at the machine for this command, and copies the build unless it is there. Fails with one
  /// line: the machine can't be reached, refuses the login, has another architecture or no space,
  /// or can't run the build.
  Result<void> prepare(const RemoteBuild& build, const RemoteCommand& command);

  /// After prepare(). Starts the command, or finds the one that runs or has ended, shows what it
  /// writes and returns its files. Fails with `launch` if a GPU is needed and missing.
  Result<RemoteResult> run(const RemoteCommand& command);

  /// Forgets a command there whose results were stored here. One that was interrupted or failed
  /// keeps its database, with which the same command goes on.
  Result<void> finish(int exit_code);

  /// Removes everything of GRETA's there. Fails if a command runs.
  Result<void> clean();

 private:
  struct Follower;
  class Line;

  /// Runs a script that can run again after a lost line. `ends_on_stop`: a stop ends it.
  Result<std::string> repeat(const std::string& script, const std::string& input,
                             std::chrono::seconds deadline, bool ends_on_stop = true) const;
  Result<void> look();
  /// Reads what look_script() said.
  Result<void> note(const std::string& said);
  Result<void> copy_build(const RemoteBuild& build);
  Result<void> check_gpu() const;
  Result<void> start(const RemoteCommand& command, const std::string& folder, bool is_new);
  Result<int> follow(const std::string& folder);
  Result<RemoteResult> bring_back(const RemoteCommand& command, const std::string& folder,
                                  int exit_code);

  RemoteMachine machine_;
  std::string wanted_;  ///< the folder as given
  std::string base_;    ///< the folder there, absolute
  std::string build_;   ///< the build there, absolute
  std::uint64_t free_kib_ = 0;
  std::string architecture_;
  std::vector<std::string> builds_;
  std::string key_, state_;  ///< of the command
  RemoteEvents events_;
  const std::atomic<bool>& stop_;
  std::chrono::seconds patience_;
};

}  // namespace greta::tuner
