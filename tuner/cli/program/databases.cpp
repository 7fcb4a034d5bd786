#include "tuner/cli/program/databases.hpp"

#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/tuning/tuner.hpp"

namespace greta::tuner::cli {

void check_new_database(const std::filesystem::path& file) {
  if (file.empty()) throw CommandError(exit_usage, "--db \"\": needs a file name");
  if (file != default_database()) check_folder("--db", file);  // the default's is created
}

void check_results_database(const std::filesystem::path& file) {
  check_new_database(file);
  value_of(check_results(file));
}

TunedDb open_database(const std::filesystem::path& file, TunedDb::Mode mode) {
  if (mode == TunedDb::Mode::read_write) check_new_database(file);
  return value_of(tuner::open_database(file, mode));
}

TunedDb open_source(const std::filesystem::path& file) {
  try {
    return TunedDb::open(file, TunedDb::Mode::read_only);
  } catch (const Error& error) {
    throw CommandError(exit_usage, error.what());
  }
}

std::filesystem::path named_database(const std::string& option, const std::string& file) {
  value_of(check_database(option.substr(2), file));
  return file;
}

}  // namespace greta::tuner::cli
