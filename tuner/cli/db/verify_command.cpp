#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "db/tuned_db.hpp"
#include "runtime/device/system/input_file.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct VerifyOptions {
  std::filesystem::path db = default_database();
  bool json = false;
};

/// A database's contents and its damaged rows.
struct Content {
  bool shipped = false;
  TunedDb::Counts counts;
  std::vector<DamagedRow> damaged;
};

/// Returns the errors of a database: SQLite's findings, wrong checksums, and data that can't be
/// read back.
std::vector<std::string> find_damage(const std::filesystem::path& file, Content& content) {
  try {
    const TunedDb db = TunedDb::open(file, TunedDb::Mode::read_only);
    content.shipped = db.shipped();
    content.counts = db.counts();
    auto findings = db.check();
    if (!findings.empty()) content.damaged = db.damaged();
    if (!findings.empty()) return findings;
    db.contents();
    db.winners_by_hardware();
    for (const auto& session : db.sessions()) db.trials(session.id);
    return findings;
  } catch (const Error& error) {
    return {error.what()};
  }
}

/// Returns whether a file is empty or begins like a database of SQLite, as a damaged one does.
bool may_be_database(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) return false;
  constexpr std::string_view magic = "SQLite format 3";
  std::string begin(magic.size(), '\0');
  const auto opened = InputFile::open(file);
  if (!opened) return true;  // opening it as a database says why
  return pread(opened->descriptor(), begin.data(), begin.size(), 0) == 0 || begin == magic;
}

int verify(const VerifyOptions& options) {
  if (!std::filesystem::exists(options.db)) {
    throw CommandError(exit_usage,
                       fmt::format("--db {}: there is no such file", options.db.string()));
  }
  if (!may_be_database(options.db)) {
    throw CommandError(exit_usage, fmt::format("--db {}: is not a database", options.db.string()));
  }
  Content content;
  const auto findings = find_damage(options.db, content);
  const auto& counts = content.counts;
  if (options.json) {
    print_json(nlohmann::json{{"file", options.db.string()},
                              {"sound", findings.empty()},
                              {"findings", findings},
                              {"damaged", damage_json(content.damaged)},
                              {"results", counts.winners},
                              {"trials", counts.trials},
                              {"sessions", counts.sessions}});
  } else if (findings.empty()) {
    print("{} is intact: {}, {}, {}\n", options.db.string(), format_count(counts.winners, "result"),
          format_count(counts.trials, "trial"), format_count(counts.sessions, "session"));
  } else {
    for (const auto& finding : findings) print("{}\n", finding);
  }
  if (findings.empty()) return exit_done;
  throw CommandError(
      exit_failed,
      fmt::format("{}: {}{}", options.db.string(), format_count(findings.size(), "finding"),
                  content.damaged.empty()
                      ? ""
                      : "; " + left_out_text(content.damaged.size(), content.shipped)));
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "verify", "Check a database: structure, references, every row's checksum, every value");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("--db", options->db, "Database of trials and winners")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer("Exit code 1 if anything is found. Example: greta-db verify --db tuned.db");
  command->callback([&action, options] { action = [options] { return verify(*options); }; });
}

}  // namespace greta::tuner::cli
