#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/report_page.hpp"
#include "tuner/cli/report/commands.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::filesystem::path out = "report.html";
};

int report(const ReportOptions& options) {
  if (options.files.empty()) throw CommandError(exit_usage, "files: at least one is needed");
  check_report("--out", options.out);
  const ReportFiles files = report_files(options.files);
  write_report(files, options.out);
  const auto bytes = std::filesystem::file_size(options.out);
  print("{}: {}\n", options.out.string(), format_bytes(static_cast<double>(bytes)));
  return end_of_report(files, exit_done);
}

}  // namespace

void add_report_options(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("files", options->files,
                 "Databases, recordings, CSV files of baselines, and traces of greta-run --trace")
      ->type_name("FILE");
  app.add_option("--out", options->out, "The page to write; replaces an existing page")
      ->type_name("FILE")
      ->capture_default_str();
  add_kernels_option(app);
  action = [options] { return report(*options); };
}

}  // namespace greta::tuner::cli
