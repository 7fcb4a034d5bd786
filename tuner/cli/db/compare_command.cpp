#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/report/change_report.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct CompareOptions {
  std::filesystem::path base, fresh;
  bool json = false;
};

int compare(const CompareOptions& options) {
  const TunedDb before = open_source(options.base);
  const TunedDb after = open_source(options.fresh);
  const auto changes = answer_changes(before.winners(), after.winners());
  if (options.json) {
    print_json(change_json(changes));
  } else {
    print_text(change_text(changes));
  }
  const int code = lost_ground(changes) ? exit_regression : exit_done;
  return end_of_reading(after, end_of_reading(before, code));
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "compare", "Which answers of a database became better or worse, or were lost, in another");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("base", options->base, "The old database")->required();
  command->add_option("new", options->fresh, "The new database")->required();
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer(
      "Answers are compared by their speed-ups over the default, or by their times if the defaults "
      "differ.\nThe exit code is 4 if an answer is worse or lost. Example: greta-db compare "
      "shipped.db tuned.db");
  command->callback([&action, options] { action = [options] { return compare(*options); }; });
}

}  // namespace greta::tuner::cli
