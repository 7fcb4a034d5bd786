#include "tuner/cli/bench/options.hpp"

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/validate.hpp"

namespace greta::tuner::cli {

void add_options(CLI::App& app, BenchOptions& options) {
  app.add_option("--preset", options.preset,
                 "A preset's name (smoke, standard, perf, verify) or file")
      ->capture_default_str();
  add_run_options(app, options);
  app.add_option("--filter", options.filter, "Only benchmarks whose names match this expression");
  app.add_option("--repeat", options.repeat, "Number of runs of the whole preset [the preset's]");
  app.add_flag("--untuned", options.untuned, "Run default configurations, not winners");
  app.add_flag("--both", options.both, "Run both, and report the speedup");
  app.add_flag("--compute-only", options.compute_only, "Kernels only: omit platform and runtime");
  app.add_flag("--resume", options.resume,
               "Skip benchmarks that the file of --export already has, in the same environment");
  add_number(app, "--limit", options.limit_s,
             "Seconds after which no benchmark starts; results are exported as they are measured",
             {.least = 0, .exclusive = true})
      ->type_name("SECONDS");
}

void add_run_options(CLI::App& app, BenchOptions& options) {
  app.add_option("--device", options.device,
                 "auto, an id as vulkan:0, or a part of a name; a list as hip:0,vulkan:0")
      ->capture_default_str();
  add_validate_option(app, options.device);
  app.add_option("--timeout", options.timeout, "Timeout of one launch in seconds")
      ->capture_default_str();
  add_number(app, "--settle", options.settle_s,
             "Time limit in seconds for additional samples of noisy kernels; 0: none", {.least = 0})
      ->capture_default_str();
  app.add_option("--db", options.db, "Database whose winners run")->capture_default_str();
  add_known_databases(app, options.known);
  app.add_option(
      "--flush", options.flush,
      "Memory in MiB that flushes the caches before each sample; default: by their size");
  add_kernels_option(app);
  app.add_option("--seed", options.seed, "Seed of the inputs; random by default");
  app.add_option("--trace", options.trace, "Write a trace of host and device for Perfetto (JSON)");
  add_choice(app, "--processes", options.processes,
             "What is measured in new processes, one for each block of samples: calls, auto (calls "
             "and, on a GPU, short kernels), all (calls and kernels)",
             {"auto", "calls", "all"})
      ->type_name("PROCESSES");
  app.add_flag("--warm", options.warm, "Don't flush the caches before each sample");
  app.add_flag("--counters", options.counters,
               "Also count what each kernel does on the hardware, in a process of its own after "
               "the timing (docs/profile.md)");
  app.add_flag("--allow-unsafe", options.allow_unsafe,
               "Also use devices and features that failed a health check (greta-bench doctor)");
  app.add_flag("--no-lock", options.no_lock,
               "Don't wait for another tool that measures on the same card");
  app.add_option("--export", options.export_file,
                 "Append rows to a CSV file [results/DEVICE/DATE_PRESET.csv]")
      ->expected(0, 1);
  app.add_flag("--json", options.json, "Print the results as JSON (docs/json.md), not as a table");
  app.add_option("--report", options.report,
                 "Write a page that shows the database and the file of --export (docs/report.md)");
}

}  // namespace greta::tuner::cli
