#include "tuner/cli/report/commands.hpp"

namespace greta::tuner::cli {
namespace {

constexpr auto examples = R"(Examples:
  greta-report tuned.db                                # writes report.html
  greta-report tuned.db other.db --out both.html
  greta-report tuned.db before.csv after.csv           # baselines over time
  greta-report tuned.db trace.json                     # with a model's steps
  greta-report serve tuned.db                          # live in a browser, while a tune runs
  greta-report tuned.db recorded.jsonl.gz              # with the configurations of greta-tune --record)";

void add_commands(CLI::App& app, Action& action) {
  add_report_options(app, action);
  add_serve_command(app, action);
}

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  return greta::tuner::cli::run_tool(
      {"greta-report", "Writes one HTML page that shows databases, baselines and model steps.",
       greta::tuner::cli::examples, greta::tuner::cli::add_commands, false},
      argc, argv);
}
