#include "tuner/cli/db/commands.hpp"

namespace greta::tuner::cli {
namespace {

constexpr auto examples = R"(Examples:
  greta-db info
  greta-db list --op gemm --device gfx942 --dtype f16
  greta-db list --stale --json
  greta-db show --op softmax
  greta-db export --ship --fresh --out tuned.db
  greta-db export --kernel my_gemm gemm m=4096
  greta-db compare shipped.db tuned.db
  greta-db requalify --device vulkan:0
  greta-db regret --op gemm --measure
  greta-db merge colleague.db other.db
  greta-db import tunableop_results0.csv
  greta-db pin --op gemm --dims "m=4096 n=4096 k=4096"
  greta-db verify --db results/tuned.db
  greta-db prune --trials --failed --op gemm --dry-run)";

void add_commands(CLI::App& app, Action& action) {
  add_info_command(app, action);
  add_list_command(app, action);
  add_show_command(app, action);
  add_compare_command(app, action);
  add_export_command(app, action);
  add_import_command(app, action);
  add_merge_command(app, action);
  add_pin_commands(app, action);
  add_prune_command(app, action);
  add_regret_command(app, action);
  add_requalify_command(app, action);
  add_upgrade_command(app, action);
  add_verify_command(app, action);
  add_worker_command(app, action);
}

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  return greta::tuner::cli::run_tool(
      {"greta-db", "Inspects and maintains GRETA's databases of tuned kernels.",
       greta::tuner::cli::examples, greta::tuner::cli::add_commands},
      argc, argv);
}
