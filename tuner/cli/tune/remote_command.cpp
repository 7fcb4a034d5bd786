#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "db/history.hpp"
#include "db/merge.hpp"
#include "runtime/device/system/module_paths.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/remote_words.hpp"
#include "tuner/remote/remote_run.hpp"
#include "tuner/remote/remote_script.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

struct RemoteOptions {
  std::string host, ssh = "ssh", folder;
  fs::path build, db = default_database();
  double retry_s = 600;
  bool clean = false, quiet = false;
};

/// Prints text as it arrives, in whole lines.
class Lines {
 public:
  explicit Lines(std::FILE* stream) : stream_(stream) {}
  ~Lines() { print_text(stream_, rest_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void add(std::string_view text) {
    rest_ += text;
    const auto end = rest_.rfind('\n');
    if (end == std::string::npos) return;
    print_text(stream_, rest_.substr(0, end + 1));
    std::fflush(stream_);
    rest_.erase(0, end + 1);
  }

 private:
  std::FILE* stream_;
  std::string rest_;
};

template <typename T>
T checked(Result<T> result) {
  if (result) return *std::move(result);
  const Failure& failure = result.failure();
  throw CommandError(failure.status == Status::invalid_argument ? exit_usage
                     : failure.status == Status::launch         ? exit_no_device
                                                                : exit_failed,
                     failure.message);
}
void check(const Result<void>& result) {
  if (!result) throw CommandError(exit_failed, result.failure().message);
}

RemoteMachine machine_of(const RemoteOptions& options) {
  if (options.host.empty() || options.host.front() == '-') {
    throw CommandError(exit_usage, fmt::format("\"{}\" is not a host", options.host));
  }
  std::vector<std::string> ssh = words_of(options.ssh);
  if (ssh.empty()) throw CommandError(exit_usage, "--ssh: needs a program");
  if (!options.folder.empty() && !is_plain_path(options.folder)) {
    throw CommandError(
        exit_usage,
        fmt::format("--folder {}: may have letters, digits, /, ., _, -, + and @", options.folder));
  }
  return {options.host, std::move(ssh)};
}

/// Copies what look-ups need of the database here, without its trials, so that a run there begins
/// with the winners and the peaks that are known. Returns the file; empty if there is no database.
fs::path copy_of(const fs::path& database, const fs::path& folder) {
  if (!fs::exists(database)) return {};
  const TunedDb mine = open_database(database, TunedDb::Mode::read_only);
  fs::path copy = folder / "tuned.db";
  TunedDb fresh = open_database(copy, TunedDb::Mode::read_write);
  fresh.merge(mine.contents());
  return copy;
}

void merge_results(const RemoteOptions& options, const fs::path& file) {
  const TunedDb theirs = open_source(file);
  if (const auto damage = theirs.check(); !damage.empty()) {
    throw CommandError(exit_failed,
                       fmt::format("{}: its database is damaged, nothing was merged: {}",
                                   options.host, damage.front()));
  }
  check_new_database(options.db);
  TunedDb db = open_database(options.db, TunedDb::Mode::read_write);
  const MergeReport report = db.merge(theirs.contents()).report;
  const HistoryMerge history = db.merge_history(theirs);
  if (!options.quiet) {
    print(stderr, "{}: {} added, {} better, {} worse, {} the same; {} with {}; stored in {}\n",
          options.host, format_count(static_cast<std::int64_t>(report.added), "result"),
          report.replaced, report.worse, report.same, format_count(history.sessions, "session"),
          format_count(history.trials, "trial"), options.db.string());
  }
  end_of_writing(db, exit_done);
}

int run_remote(RemoteOptions options, const std::vector<std::string>& words) {
  Lines output(stdout), errors(stderr);
  const RemoteEvents events{.say =
                                [&](const std::string& line) {
                                  if (!options.quiet) tell(line);
                                },
                            .output = [&](std::string_view text) { output.add(text); },
                            .errors = [&](std::string_view text) { errors.add(text); },
                            .on_stop = [] { answer_interrupt(); }};
  RemoteRun remote(machine_of(options), options.folder, events, stop_requested(),
                   std::chrono::seconds(static_cast<std::int64_t>(options.retry_s)));
  if (options.clean) {
    if (!words.empty()) throw CommandError(exit_usage, "--clean: takes no command");
    check(remote.clean());
    return exit_done;
  }
  RemoteCommand command = remote_command(words, options.db);
  auto folder = checked(device::TemporaryFolder::make("greta-remote"));
  command.database = copy_of(options.db, folder.path());
  catch_interrupts();
  {
    const RemoteBuild build = checked(collect_build(
        options.build.empty() ? program_file().parent_path().parent_path() : options.build));
    check(remote.prepare(build, command));
  }
  const RemoteResult result = checked(remote.run(command));
  if (!result.database.empty()) merge_results(options, result.database);
  check(remote.finish(result.exit_code));
  return result.exit_code;
}

}  // namespace

void add_remote_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "remote",
      "Tune or benchmark on another machine through ssh, and bring the results back; the command "
      "follows the host");
  auto options = std::make_shared<RemoteOptions>();
  command->add_option("host", options->host, "The machine, as ssh names it; the command follows")
      ->type_name("HOST")
      ->required();
  command->add_option("--ssh", options->ssh, "ssh with its options, as \"ssh -p 2222\"")
      ->type_name("COMMAND")
      ->capture_default_str();
  command
      ->add_option("--build", options->build,
                   "The installation or build folder that is copied, by default this one")
      ->type_name("DIR");
  command
      ->add_option("--folder", options->folder,
                   "The folder there for builds and runs, by default greta/remote in the cache")
      ->type_name("DIR");
  command->add_option("--db", options->db, "The database that receives the results")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--retry", options->retry_s,
                   "How long to try to reconnect after the line is lost; the command goes on there")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  command->add_flag("--clean", options->clean, "Remove all that is GRETA's there");
  command->add_flag("--quiet", options->quiet, "Only what the command prints");
  command->prefix_command();
  command->footer(
      "Examples:\n  greta-tune remote gpu1 gemm --m 4096 --n 4096 --k 4096 --dtype f16\n"
      "  greta-tune remote --ssh \"ssh -p 2222\" me@gpu1 preset perf --budget 1m --csv perf.csv\n"
      "  greta-tune remote gpu1 bench --preset perf --export gpu1.csv");
  command->callback([&action, options, command] {
    action = [options, words = command->remaining()] { return run_remote(*options, words); };
  });
}

}  // namespace greta::tuner::cli
