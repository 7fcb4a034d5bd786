#include "tuner/cli/report/commands.hpp"

namespace greta::tuner::cli {
namespace {

constexpr auto examples = R"(Examples:
  greta-report tuned.db                                # writes report.html
  greta-report tuned.db other.db --out both.html
  greta-report tuned.db before.csv after.csv           # baselines over time
  greta-report tuned.db trace.json                     # with a model's steps
  greta-report tuned.db recorded.jsonl.gz              # with the configurations of greta-tune --record)";

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  return greta::tuner::cli::run_tool(
      {"greta-report", "Writes one HTML page that shows databases, baselines and model steps.",
       greta::tuner::cli::examples, greta::tuner::cli::add_report_options, false},
      argc, argv);
}
