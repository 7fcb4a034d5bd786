#include "tuner/cli/options/database_options.hpp"

#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/paths.hpp"

namespace greta::tuner::cli {

void add_known_databases(CLI::App& command, KnownDatabases& known, const std::string& group) {
  auto* application = command
                          .add_option("--shipped", known.application,
                                      "An application's database, used below your own and above "
                                      "those that GRETA ships; may be repeated")
                          ->allow_extra_args(false);
  auto* none = command.add_flag("--no-shipped", known.no_shipped,
                                "Don't use the databases that GRETA ships (greta-db info)");
  if (group.empty()) return;
  application->group(group);
  none->group(group);
}

LookupFiles known_files(const KnownDatabases& known) {
  LookupFiles files = LookupFiles::none();
  for (const auto& file : known.application) {
    files.application.push_back(named_database("--shipped", file));
  }
  if (!known.no_shipped) files.shipped = folder_of_shipped();
  return files;
}

}  // namespace greta::tuner::cli
