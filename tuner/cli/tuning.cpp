#include "tuner/cli/tuning.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>

#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/utc.hpp"
#include "tuner/cli/commands.hpp"
#include "tuner/cli/numbers.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/progress.hpp"
#include "tuner/report/report.hpp"
#include "tuner/search/strategy.hpp"

namespace greta {
namespace {

std::atomic<bool> stop_requested{false};

// The first signal asks for an orderly end, a second one of its kind ends the process.
void on_interrupt(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

std::string names_of_strategies() {
  std::string names;
  for (const auto& entry : strategies())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

std::uint64_t flush_bytes(const std::string& text) {
  if (text.empty()) return 0;
  std::size_t end = 0;
  double mebibytes = 0;
  try {
    mebibytes = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end != text.size() || !(mebibytes >= 1) || mebibytes > 65536) {
    throw CommandError(exit_usage,
                       fmt::format("--flush {}: must be MiB between 1 and 65536", text));
  }
  return static_cast<std::uint64_t>(mebibytes * 1024 * 1024);
}

// An existing file must be one of ours: rows are appended to it, never written over.
void check_csv(const std::filesystem::path& file) {
  if (file.empty()) return;
  const auto refuse = [&](std::string_view why) {
    throw CommandError(exit_usage, fmt::format("--csv {}: {}", file.string(), why));
  };
  if (std::filesystem::exists(file)) {
    std::ifstream in(file);
    std::string first;
    if (std::getline(in, first) && first + "\n" != csv_header()) {
      refuse("exists and has other columns");
    }
    if (access(file.c_str(), W_OK) != 0) refuse("can't be written");
    return;
  }
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (access(folder.c_str(), W_OK) != 0) refuse("can't be written");
}

std::vector<Config> read_configs(const Problem& problem, const DeviceInfo& device,
                                 const std::vector<std::string>& texts) {
  std::vector<Config> configs;
  if (texts.empty()) return configs;
  const Space space = find_template(problem.op)->space(problem, device);
  for (const auto& text : texts) {
    auto config = space.parse(text);
    if (!config) {
      throw CommandError(exit_usage, "--try: " + config.failure().message);
    }
    configs.push_back(*std::move(config));
  }
  return configs;
}

double available_host_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  double kilobytes = 0;
  for (std::string unit; in >> name >> kilobytes; std::getline(in, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

void check_fits(const Problem& problem, const DeviceInfo& device) {
  double operands = 0;
  double largest = 0;
  double host = 0;
  for (const auto& spec : find_template(problem.op)->tensors(problem)) {
    const auto bytes =
        static_cast<double>(spec.elements()) * static_cast<double>(size_of(spec.dtype));
    operands += bytes;
    largest = std::max(largest, bytes);
    // Drawn as it is and converted for the reference; outputs are brought back.
    host += bytes + 20.0 * static_cast<double>(spec.elements());
  }
  const auto memory = static_cast<double>(device.memory_bytes);
  const auto allocation = static_cast<double>(device.max_allocation_bytes);
  const auto refuse = [&](double needed, const std::string& limit, double there) {
    throw CommandError(exit_usage, fmt::format("{}: needs {}, {} {}", problem.dims_text(),
                                               format_bytes(needed), limit, format_bytes(there)));
  };
  if (operands > memory) refuse(operands, device.id() + " has", memory);
  if (allocation > 0 && largest > allocation) {
    refuse(largest, "for one operand, where the largest allocation on " + device.id() + " is",
           allocation);
  }
  const double needed = host + (device.unified_memory || device.is_cpu() ? operands : 0);
  const double available = available_host_bytes();
  if (available > 0 && needed > available) {
    refuse(needed, "of host memory to verify results, where free are", available);
  }
}

}  // namespace

void add_tuning_options(CLI::App& command, TuningOptions& options, const std::string& budget) {
  options.budget = budget;
  options.db = default_database();
  const std::string group = "Tuning";
  command.add_option("--device", options.device, "auto, an id as vulkan:0, or a part of a name")
      ->group(group)
      ->capture_default_str();
  command.add_option("--strategy", options.strategy, names_of_strategies())
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--budget", options.budget,
                  "Time (60s, 10m), trials (500) or share of the space (5%)")
      ->group(group)
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of inputs and search; random when left out")
      ->group(group);
  command.add_flag("--warm", options.warm, "Don't overwrite the caches before each sample")
      ->group(group);
  command
      .add_option("--flush", options.flush,
                  "MiB to overwrite before each sample; default: twice the last-level cache")
      ->group(group);
  command.add_flag("--naive", options.naive, "Also time a kernel with one thread per output")
      ->group(group);
  command
      .add_flag("--in-process", options.in_process,
                "Run kernels in this process, not in a worker; a crash ends the run")
      ->group(group);
  command.add_option("--db", options.db, "Database of trials and winners")
      ->group("Output")
      ->capture_default_str();
  command.add_flag("--json", options.json, "Print one JSON object (docs/json.md)")->group("Output");
  command.add_option("--csv", options.csv, "Append rows to a CSV file (docs/csv.md)")
      ->group("Output");
}

void no_such_device(const std::string& wanted, const Failure& failure) {
  for (Backend* backend : backends()) {
    for (const auto& device : backend->probe().devices) {
      if (device.usable) {
        throw CommandError(exit_usage, fmt::format("--device {}: {}", wanted, failure.message));
      }
    }
  }
  throw CommandError(exit_no_device, failure.message);
}

TunedDb open_database(const std::filesystem::path& file, TunedDb::Mode mode) {
  try {
    return TunedDb::open(file, mode);
  } catch (const Error& error) {
    throw CommandError(error.status() == Status::invalid_argument ? exit_usage : exit_failed,
                       std::string("--db ") + error.what());
  }
}

Tuning::Tuning(const TuningOptions& options, const std::vector<TuningTask>& tasks)
    : options_(options), date_(utc_now()) {
  auto budget = Budget::parse(options.budget);
  if (!budget) throw CommandError(exit_usage, budget.failure().message);
  budget_ = *std::move(budget);
  if (find_strategy(options.strategy) == nullptr) {
    throw CommandError(exit_usage, fmt::format("--strategy {}: must be one of {}", options.strategy,
                                               names_of_strategies()));
  }
  seed_ = read_seed(options.seed);
  EvaluatorOptions evaluator;
  evaluator.device = options.device;
  evaluator.cache_directory = default_cache_directory();
  evaluator.seed = seed_;
  evaluator.flush_bytes = flush_bytes(options.flush);
  const auto selected = select_device(options.device);
  if (!selected) no_such_device(options.device, selected.failure());
  for (const auto& task : tasks) {
    check_fits(task.problem, selected->info);
    read_configs(task.problem, selected->info, task.try_first);
  }
  check_csv(options.csv);
  if (options.in_process) {
    evaluator_ = std::make_unique<LocalEvaluator>(evaluator);
  } else {
    evaluator_ = std::make_unique<WorkerEvaluator>(
        std::vector<std::string>{"/proc/self/exe", "worker"}, evaluator);
  }
  db_ = open_database(options.db, TunedDb::Mode::read_write);
}

SessionResult Tuning::run(const TuningTask& task) {
  SessionOptions session;
  session.try_first = read_configs(task.problem, evaluator_->device(), task.try_first);
  session.budget = budget_;
  session.strategy = options_.strategy;
  session.seed = seed_;
  session.cold = !options_.warm;
  session.compare_naive = options_.naive;
  session.started_utc = date_;
  session.command = "greta-tune " + task.problem.key();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_interrupt);
  Progress progress(stderr, isatty(STDERR_FILENO) != 0);
  return tune(*evaluator_, *db_, task.problem, session, progress, stop_requested);
}

void Tuning::write_csv(const SessionResult& result) {
  if (options_.csv.empty()) return;
  std::error_code ignored;
  const bool fresh = std::filesystem::file_size(options_.csv, ignored) == 0 || ignored;
  std::ofstream out(options_.csv, std::ios::app);
  if (fresh) out << csv_header();
  out << csv_rows(result, !options_.warm, date_);
  out.close();
  if (!out) {
    throw CommandError(exit_failed, fmt::format("--csv {}: can't be written; the trials are in {}",
                                                options_.csv.string(), database().string()));
  }
}

bool Tuning::interrupted() const {
  return stop_requested;
}

}  // namespace greta
