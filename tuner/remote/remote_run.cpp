#include "tuner/remote/remote_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <thread>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/output_file.hpp"
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

/// The place of a word's file below the folder of inputs or outputs of a run. Files keep their
/// names, and those beside them their places, also in folders above.
fs::path place_of(const RemoteCommand::Word& word, std::size_t number) {
  std::ptrdiff_t above = 0;
  for (const fs::path& each : word.beside) {
    above = std::max(above, std::count(each.begin(), each.end(), fs::path("..")));
  }
  fs::path place = std::to_string(number);
  for (; above > 0; --above) place /= "in";
  return place / word.file.filename();
}

/// The name of a word's file in the folder of a run.
std::string name_of(const RemoteCommand::Word& word, std::size_t number) {
  return (fs::path(word.is_output ? "outputs" : "inputs") / place_of(word, number)).string();
}

/// Returns the content of a file that a command reads.
Result<std::string> read_input(const fs::path& file) {
  return device::read_file(file, most_input_bytes);
}

/// Returns what makes a command the same as another one: its words, and what its files contain.
Result<std::string> key_of(const RemoteCommand& command) {
  device::Hash hash;
  hash.add(command.program);
  for (const RemoteCommand::Word& word : command.words) {
    hash.add(word.text).add(word.file.string());
    if (word.file.empty() || word.is_output) continue;
    auto content = read_input(word.file);
    if (!content) return content.failure();
    hash.add(*content);
    for (const fs::path& each : word.beside) {
      auto other = read_input(word.file.parent_path() / each);
      if (!other) return other.failure();
      hash.add(each.string()).add(*other);
    }
  }
  return hash.hex().substr(0, 16);
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

void copy_into(const fs::path& from, const fs::path& to) {
  fs::create_directories(to.parent_path());
  if (fs::exists(from)) fs::copy_file(from, to, fs::copy_options::skip_existing);
}

/// Makes the folder of a run as it is copied. `is_new`: with the database, with which later runs
/// continue.
Result<void> fill(const fs::path& to, const RemoteCommand& command, const std::string& script,
                  bool is_new) {
  fs::create_directories(to / "inputs");
  fs::create_directories(to / "new");  // start_script()
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const RemoteCommand::Word& word = command.words[i];
    if (word.file.empty()) continue;
    const fs::path copy = to / (word.is_output ? "new" : "inputs") / place_of(word, i);
    copy_into(word.file, copy);
    for (const fs::path& each : word.beside) {
      const fs::path other = copy.parent_path() / each;
      copy_into(word.file.parent_path() / each, other.lexically_normal());
    }
  }
  if (is_new && !command.database.empty()) fs::copy_file(command.database, to / "tuned.db");
  return device::replace_file(to / "run.sh", script);
}

/// Returns what a file here becomes that the command there was given as `given` and left as
/// `written`. If it changed here in the meantime, what the command appended is appended.
Result<std::string> joined_text(const fs::path& here, const fs::path& given,
                                const fs::path& written) {
  auto theirs = read_input(written);
  auto before = read_input(given);
  auto mine = read_input(here);
  for (const auto* each : {&theirs, &before, &mine}) {
    if (!*each) return each->failure();
  }
  if (*mine == *before || !theirs->starts_with(*before)) return theirs;
  return *mine + theirs->substr(before->size());
}

/// Makes a file here what the command left; `given`: the file that it was given, if there was one.
Result<void> bring(const fs::path& here, const fs::path& given, const fs::path& written) {
  const bool was_given = fs::is_regular_file(given) && fs::is_regular_file(here);
  const auto text = was_given ? joined_text(here, given, written) : read_input(written);
  if (!text) return text.failure();
  return device::replace_file(here, *text);
}

}  // namespace

RemoteRun::RemoteRun(RemoteMachine machine, std::string folder, RemoteEvents events,
                     const std::atomic<bool>& stop, seconds patience)
    : machine_(std::move(machine)),
      wanted_(std::move(folder)),
      events_(std::move(events)),
      stop_(stop),
      patience_(patience) {}

/// A line that was lost: when to try again, and for how long.
class RemoteRun::Line {
 public:
  explicit Line(const RemoteRun& run, bool ends_on_stop = true)
      : run_(run), ends_on_stop_(ends_on_stop) {}

  /// The machine was heard.
  void heard() { contact_ = Clock::now(), pause_ = seconds(1); }

  /// Waits before the next try. Returns whether there is one. `state` is what goes on there.
  bool waits(const std::string& state) {
    if (stopped() || Clock::now() - contact_ > run_.patience_) return false;
    run_.events_.say(fmt::format("{}: the line is lost{}; next try in {} s", run_.machine_.host(),
                                 state, pause_.count()));
    for (int i = 0; i < 10 * pause_.count() && !stopped(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    pause_ = std::min(2 * pause_, seconds(16));
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool stopped() const { return ends_on_stop_ && run_.stop_; }

  const RemoteRun& run_;
  bool ends_on_stop_;
  Clock::time_point contact_ = Clock::now();
  seconds pause_{1};
};

Result<std::string> RemoteRun::repeat(const std::string& script, const std::string& input,
                                      seconds deadline, bool ends_on_stop) const {
  std::optional<Line> line;
  for (;;) {
    auto said = machine_.run(script, input, deadline, ends_on_stop ? &stop_ : nullptr);
    if (said || !is_lost_line(said.failure())) return said;
    if (!line) line.emplace(*this, ends_on_stop);
    if (!line->waits("")) return said;
  }
}

Result<void> RemoteRun::look() {
  auto said = machine_.run(look_script(wanted_, key_), "", short_patience, &stop_);
  return said ? note(*said) : said.failure();
}

Result<void> RemoteRun::note(const std::string& said) {
  auto place = read_look(said);
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
  if (std::find(builds_.begin(), builds_.end(), build.hash) != builds_.end()) return {};
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
  auto copied = repeat(copy_build_script(build_), *archive, copy_patience);
  if (!copied) return copied.failure();
  const std::string why = broken_build(*copied);
  if (why.empty()) return {};
  return io_failure(
      fmt::format("{}: {}; --build names a build that starts there (cmake --preset portable)",
                  machine_.host(), why));
}

Result<void> RemoteRun::check_gpu() const {
  auto said = repeat(devices_script(build_), "", short_patience);
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
  std::optional<Line> line;
  for (;;) {
    auto started = machine_.run(start_script(folder), *archive, copy_patience);
    if (started) return {};
    if (!is_lost_line(started.failure())) return started.failure();
    if (!line) line.emplace(*this);
    if (!line->waits("")) return started.failure();
    // The command may run already.
    auto said = repeat(look_script(wanted_, key_), "", short_patience);
    if (!said) return said.failure();
    if (auto noted = note(*said); !noted) return noted;
    if (state_ == "runs" || state_ == "ended") return {};
  }
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

Result<int> RemoteRun::follow(const std::string& folder) {
  Follower follower{events_};
  bool has_stopped = false;
  Line line(*this);
  const auto reader = [&](std::string& text) {
    if (!text.empty()) line.heard();
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
    if (line.waits("; the command goes on there")) continue;
    const std::string why = outcome->last_error_line();
    return Failure{Status::unavailable,
                   fmt::format("{}: the line is lost{}; the command goes on there, and the same "
                               "call finds it",
                               machine_.host(), why.empty() ? "" : " (" + why + ")"),
                   {}};
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
  auto archive = repeat(fetch_script(folder), "", copy_patience, false);
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
    auto brought = bring(word.file, result.folder.path() / "given" / place_of(word, i), file);
    if (!brought) return brought.failure();
  }
  return result;
}

Result<RemoteResult> RemoteRun::run(const RemoteCommand& command) {
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
  auto code = follow(folder);
  if (!code) return code.failure();
  return bring_back(command, folder, *code);
}

Result<void> RemoteRun::finish(int exit_code) {
  // What was interrupted or failed goes on with its database.
  const bool is_done = exit_code == 0 || (exit_code >= 2 && exit_code <= 4);
  auto done = repeat(finish_script(base_ + "/runs/" + key_, is_done), "", short_patience, false);
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
