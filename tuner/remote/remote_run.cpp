#include "tuner/remote/remote_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/hash.hpp"
#include "tuner/remote/remote_script.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr seconds short_patience{60}, copy_patience{3600};
constexpr std::uint64_t most_input_bytes = std::uint64_t{1} << 30;

Failure io_failure(const std::string& message) {
  return {Status::io, message, {}};
}

/// The name of a word's file in the folder of a run.
std::string name_of(const RemoteCommand::Word& word, std::size_t number) {
  return fmt::format("{}/{}-{}", word.is_output ? "outputs" : "inputs", number,
                     word.file.filename().string());
}

/// Returns what makes a command the same as another one: its words, and what its files contain.
Result<std::string> key_of(const RemoteCommand& command) {
  device::Hash hash;
  hash.add(command.program);
  for (const RemoteCommand::Word& word : command.words) {
    hash.add(word.text).add(word.file.string());
    if (word.file.empty() || word.is_output) continue;
    auto content = device::read_file(word.file, most_input_bytes);
    if (!content) return content.failure();
    hash.add(*content);
  }
  return hash.hex().substr(0, 16);
}

Result<void> write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) return io_failure(file.string() + ": can't be written");
  return {};
}

/// Returns run.sh of a command.
std::string program_of(const RemoteCommand& command, const std::string& build,
                       const std::string& folder) {
  std::vector<std::string> words{build + "/bin/" + command.program};
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const RemoteCommand::Word& word = command.words[i];
    words.push_back(word.file.empty() ? word.text : word.text + folder + "/" + name_of(word, i));
  }
  words.insert(words.end(), {"--db", folder + "/tuned.db"});
  return run_script(words, build, folder);
}

/// Makes the folder of a run as it is copied. `is_new`: with what later runs continue.
Result<void> fill(const fs::path& to, const RemoteCommand& command, const std::string& script,
                  bool is_new) {
  fs::create_directories(to / "inputs");
  fs::create_directories(to / "outputs");
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const RemoteCommand::Word& word = command.words[i];
    if (word.file.empty() || (word.is_output && !(is_new && fs::exists(word.file)))) continue;
    fs::copy_file(word.file, to / name_of(word, i));
  }
  if (is_new && !command.database.empty()) fs::copy_file(command.database, to / "tuned.db");
  return write_text(to / "run.sh", script);
}

}  // namespace

RemoteRun::RemoteRun(RemoteMachine machine, std::string folder, RemoteEvents events,
                     const std::atomic<bool>& stop)
    : machine_(std::move(machine)),
      wanted_(std::move(folder)),
      events_(std::move(events)),
      stop_(stop) {}

Result<void> RemoteRun::look() {
  auto said = machine_.run(look_script(wanted_, key_), "", short_patience, &stop_);
  if (!said) return said.failure();
  auto place = read_look(*said);
  if (!place) return io_failure(machine_.host() + ": " + place.failure().message);
  base_ = place->folder;
  free_kib_ = place->free_kib;
  architecture_ = place->architecture;
  builds_ = place->builds;
  state_ = place->state;
  if (place->system != "Linux") {
    return Failure{
        Status::unavailable,
        fmt::format("{}: runs {}, and GRETA needs Linux", machine_.host(), place->system),
        {}};
  }
  return {};
}

Result<void> RemoteRun::prepare(const RemoteBuild& build, const RemoteCommand& command) {
  auto key = key_of(command);
  if (!key) return key.failure();
  key_ = *key;
  if (auto looked = look(); !looked) return looked;
  if (architecture_ != build.architecture) {
    return Failure{Status::unavailable,
                   fmt::format("{}: has the architecture {}, and the programs are for {}; --build "
                               "names others",
                               machine_.host(), architecture_, build.architecture),
                   {}};
  }
  build_ = base_ + "/builds/" + build.hash;
  if (builds_.find(build.hash) != std::string::npos) return {};
  return copy_build(build);
}

Result<void> RemoteRun::copy_build(const RemoteBuild& build) {
  const std::uint64_t needed = build.bytes / 1024 * 11 / 10 + 1024;
  if (free_kib_ < needed) {
    return Failure{Status::io,
                   fmt::format("{}: no space: {} has {} MiB left, and {} MiB are needed",
                               machine_.host(), base_, free_kib_ / 1024, needed / 1024 + 1),
                   {}};
  }
  auto archive = archive_of(build.folder.path());
  if (!archive) return archive.failure();
  events_.say(fmt::format("{}: copying GRETA ({:.1f} MiB)", machine_.host(),
                          static_cast<double>(archive->size()) / (1 << 20)));
  const std::string part = fmt::format("{}.part.{}", build_, getpid());
  auto copied = machine_.run(copy_script(part), *archive, copy_patience, &stop_);
  if (!copied) {
    static_cast<void>(machine_.run(fmt::format("rm -rf {};", part), "", short_patience));
    return copied.failure();
  }
  auto starts = machine_.run(start_build_script(part, build_), "", short_patience, &stop_);
  if (starts) return {};
  return Failure{starts.failure().status,
                 starts.failure().message +
                     "; --build names a build that starts there (cmake --preset portable)",
                 {}};
}

Result<void> RemoteRun::check_gpu() const {
  auto said = machine_.run(devices_script(build_), "", short_patience, &stop_);
  if (!said) return said.failure();
  if (const std::string why = missing_gpu(*said); !why.empty()) {
    return Failure{Status::launch,
                   fmt::format("{}: no GPU that GRETA can use: {}; --device hip-host:0 would use "
                               "its CPU",
                               machine_.host(), why),
                   {}};
  }
  return {};
}

Result<void> RemoteRun::start(const RemoteCommand& command, const std::string& folder,
                              bool is_new) {
  auto here = device::TemporaryFolder::make("greta-remote");
  if (!here) return here.failure();
  try {
    auto filled = fill(here->path(), command, program_of(command, build_, folder), is_new);
    if (!filled) return filled;
  } catch (const fs::filesystem_error& error) {
    return io_failure(fmt::format("{}: {}", error.path1().string(), error.code().message()));
  }
  auto archive = archive_of(here->path());
  if (!archive) return archive.failure();
  auto started = machine_.run(start_script(folder), *archive, copy_patience);
  if (!started) return started.failure();
  return {};
}

/// Reads the frames of follow_script(), and remembers what was shown.
struct RemoteRun::Follower {
  const RemoteEvents& events;
  FollowedState state{};

  void read(std::string& text) {
    while (const auto frame = next_frame(text)) {
      switch (frame->kind) {
        case 'O':
          state.out_bytes += frame->content.size();
          events.output(frame->content);
          break;
        case 'E':
          state.err_bytes += frame->content.size();
          events.errors(frame->content);
          break;
        case 'X':
          state.end = frame->content;
          break;
        default:
          break;
      }
    }
  }
};

Result<int> RemoteRun::follow(const std::string& folder, seconds patience) {
  using Clock = std::chrono::steady_clock;
  Follower follower{events_};
  bool has_stopped = false;
  auto contact = Clock::now();
  seconds pause{1};
  const auto reader = [&](std::string& text) {
    if (!text.empty()) contact = Clock::now(), pause = seconds(1);
    follower.read(text);
    if (!stop_ || has_stopped) return;
    has_stopped = true;
    events_.on_stop();
    static_cast<void>(machine_.run(stop_script(folder), "", short_patience));
  };
  for (;;) {
    auto outcome = machine_.follow(follow_script(folder, follower.state), reader);
    if (!outcome) return outcome.failure();
    follower.read(outcome->output);
    if (!follower.state.end.empty()) break;
    const std::string again = "the command goes on there, and the same call finds it";
    if (stop_ || Clock::now() - contact > patience) {
      return Failure{
          Status::unavailable,
          fmt::format(
              "{}: the line is lost{}; {}", machine_.host(),
              outcome->last_error_line().empty() ? "" : " (" + outcome->last_error_line() + ")",
              again),
          {}};
    }
    events_.say(fmt::format("{}: the line is lost; the command goes on there; next try in {} s",
                            machine_.host(), pause.count()));
    for (int i = 0; i < 10 * pause.count() && !stop_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    pause = std::min(2 * pause, seconds(16));
  }
  int code = 0;
  const std::string& end = follower.state.end;
  const auto [last, error] = std::from_chars(end.data(), end.data() + end.size(), code);
  if (error == std::errc() && last == end.data() + end.size()) return code;
  return Failure{Status::io,
                 fmt::format("{}: the command ended without a result; the same call goes on where "
                             "it stopped",
                             machine_.host()),
                 {}};
}

Result<RemoteResult> RemoteRun::bring_back(const RemoteCommand& command, const std::string& folder,
                                           int exit_code) {
  auto here = device::TemporaryFolder::make("greta-remote");
  if (!here) return here.failure();
  RemoteResult result{exit_code, *std::move(here), {}};
  auto archive = machine_.run(fetch_script(folder), "", copy_patience);
  if (!archive) return archive.failure();
  if (auto extracted = extract(*archive, result.folder.path()); !extracted) {
    return io_failure(machine_.host() + ": " + extracted.failure().message);
  }
  const auto file_of = [&](const std::string& name) {
    const fs::path file = result.folder.path() / name;
    return fs::is_regular_file(fs::symlink_status(file)) ? file : fs::path();
  };
  result.database = file_of("tuned.db");
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const RemoteCommand::Word& word = command.words[i];
    if (!word.is_output) continue;
    const fs::path file = file_of(name_of(word, i));
    if (file.empty()) continue;
    fs::path part = word.file;
    part += fmt::format(".{}.part", getpid());
    std::error_code error;
    fs::copy_file(file, part, fs::copy_options::overwrite_existing, error);
    if (!error) fs::rename(part, word.file, error);
    if (error) return io_failure(fmt::format("{}: {}", word.file.string(), error.message()));
  }
  return result;
}

Result<RemoteResult> RemoteRun::run(const RemoteCommand& command, seconds patience) {
  const std::string folder = base_ + "/runs/" + key_;
  if (state_ == "runs") {
    events_.say(machine_.host() + ": the command runs there already");
  } else if (state_ == "ended") {
    events_.say(machine_.host() + ": the command has ended there");
  } else if (auto usable = command.needs_gpu ? check_gpu() : Result<void>(); !usable) {
    return usable.failure();
  } else if (auto started = start(command, folder, state_ == "none"); !started) {
    return started.failure();
  }
  auto code = follow(folder, patience);
  if (!code) return code.failure();
  return bring_back(command, folder, *code);
}

Result<void> RemoteRun::finish(int exit_code) {
  // What was interrupted or failed goes on with its database.
  const bool is_done = exit_code == 0 || exit_code == 2 || exit_code == 3;
  auto done = machine_.run(finish_script(base_ + "/runs/" + key_, is_done), "", short_patience);
  if (!done) return done.failure();
  return {};
}

Result<void> RemoteRun::clean() {
  if (auto looked = look(); !looked) return looked;
  auto done = machine_.run(clean_script(base_), "", short_patience, &stop_);
  if (!done) return done.failure();
  return {};
}

}  // namespace greta::tuner
