#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/bench/block_processes.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

constexpr auto examples = R"(Examples:
  greta-bench                                     # the preset smoke on the best device
  greta-bench --preset standard --export          # and store the figures in results/
  greta-bench --preset perf --both --device hip:0 --filter gemm/f16
  greta-bench --preset my.json --repeat 10 --benchmark_out=figures.json
  greta-bench gemm --m 512 --n 512 --k 512 --each-variant    # one problem, every way
  greta-bench soak --preset perf --for 1h         # every result, the time, the card, the memory
  greta-bench doctor                              # check the health of the devices
  greta-bench doctor --bundle first-run.tar.gz    # and pack the findings for a developer elsewhere
  greta-bench compare results/lavapipe/old.csv results/lavapipe/new.csv

Google Benchmark's own flags (--benchmark_…) are accepted as well; docs/benchmarks.md has the rest.)";

bool is_google_flag(std::string_view word) {
  return word.starts_with("--benchmark_") || word.starts_with("--v=");
}

// Google Benchmark runs presets alone.
void refuse_with_command(const CLI::App& app, const std::vector<std::string>& google_flags) {
  if (google_flags.empty() || app.get_subcommands().empty()) return;
  throw CommandError(exit_usage,
                     fmt::format("{}: goes with a preset, not with the command {}",
                                 google_flags.front().substr(0, google_flags.front().find('=')),
                                 app.get_subcommands().front()->get_name()));
}

int run(int argc, char** argv) {
  const auto own = std::stable_partition(argv + std::min(argc, 1), argv + argc,
                                         [](const char* word) { return !is_google_flag(word); });
  const std::vector<std::string> google_flags(own, argv + argc);
  const std::span<char*> words(argv, static_cast<std::size_t>(own - argv));
  const auto add_commands = [&](CLI::App& app, Action& action) {
    // Benchmarks start processes, which need no options of a hundred other commands.
    const std::string_view first = words.size() > 1 ? words[1] : "";
    if (first == "blocks") return add_blocks_command(app, action);
    if (first == "worker") return add_worker_command(app, action);
    const DescribedCommand described(words, {"kernel", "soak"});
    add_bench_options(app, action, google_flags);
    add_problem_commands(app, action);
    add_own_problem_command(app, action, described.of("kernel"));
    add_soak_command(app, action, described.of("soak"));
    add_compare_command(app, action);
    add_doctor_command(app, action);
    add_schema_command(app, action);
    add_check_command(app, action);
    add_bundle_commands(app, action);
    add_blocks_command(app, action);
    add_worker_command(app, action);
    app.parse_complete_callback([&app, &google_flags] { refuse_with_command(app, google_flags); });
  };
  return run_tool({"greta-bench",
                   "Benchmarks the machine, the runtime and every kernel by a preset, stores the "
                   "figures, and detects regressions.",
                   examples, add_commands, false},
                  static_cast<int>(own - argv), argv);
}

}  // namespace

void add_schema_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("schema", "Print the JSON schema of presets");
  command->callback([&action] {
    action = [] {
      print_text(preset_schema(Catalog::built_in()));
      return exit_done;
    };
  });
}

void add_blocks_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("blocks", "Take blocks of samples in this process (internal)");
  command->group("");  // hidden
  auto kernels = std::make_shared<std::vector<std::string>>();
  command->add_option("--kernel", *kernels, "Descriptions of kernels")->allow_extra_args(false);
  command->callback([&action, kernels] {
    action = [kernels] {
      for (const std::string& file : *kernels) add_described(file);
      return serve_blocks(operations_in_use());
    };
  });
}

}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  return greta::tuner::cli::run(argc, argv);
}
