#include <fmt/format.h>

#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {

void add_upgrade_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("upgrade", "Migrate a database of an older GRETA to the present schema");
  auto file = std::make_shared<std::filesystem::path>(default_database());
  command->add_option("--db", *file, "Database of trials and winners")->capture_default_str();
  command->footer("Example: greta-db upgrade --db tuned.db");
  command->callback([&action, file] {
    action = [file]() -> int {
      const TunedDb db = open_existing(*file);
      print("{} has schema {}\n", db.file().string(), TunedDb::schema_version());
      return end_of_reading(db, exit_done);
    };
  });
}

}  // namespace greta::tuner::cli
