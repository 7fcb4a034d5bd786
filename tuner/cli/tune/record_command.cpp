#include "tuner/cli/tune/record_command.hpp"

#include <fmt/format.h>

#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/replay/space_recorder.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"
#include "tuner/tuning/tuner.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::uint64_t standard_seed = 1;  // so that the same command goes on
constexpr double progress_s = 10;

/// Opens one evaluator for each device, all of one model.
std::vector<std::unique_ptr<Evaluator>> open_evaluators(const std::vector<ProbedDevice>& devices,
                                                        const TuningOptions& tuning,
                                                        const TunerOptions& tuner,
                                                        std::uint64_t seed) {
  EvaluatorOptions options;
  options.catalog = operations_in_use();
  options.cache_directory = tuner.cache_directory;
  options.seed = seed;
  options.flush_bytes = tuner.flush_bytes;
  options.stop = &stop_requested();
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  for (const ProbedDevice& device : devices) {
    if (device.info.fingerprint() != devices.front().info.fingerprint()) {
      throw CommandError(exit_usage, fmt::format("--device: --record takes cards of one model, and "
                                                 "{} and {} are different",
                                                 devices.front().info.id(), device.info.id()));
    }
    options.device = device.info.id();
    if (std::filesystem::exists(tuning.db)) {
      const auto db = value_of(tuner::open_database(tuning.db, TunedDb::Mode::read_only));
      options.avoid = avoided_on(device.info, db, tuning.allow_unsafe);
    }
    evaluators.push_back(std::make_unique<WorkerEvaluator>(worker_command(), options));
  }
  return evaluators;
}

std::string progress_text(const RecordProgress& progress) {
  return fmt::format("{} of {} configurations recorded, {} of them failed", progress.recorded,
                     progress.wanted, progress.failed);
}

}  // namespace

void add_recording_options(CLI::App& command, RecordingOptions& options) {
  const std::string group = "Recording";
  command
      .add_option("--record", options.file,
                  "Measure configurations into this file, for greta-tune replay, in place of a "
                  "search; goes on with an earlier one; .gz compresses it")
      ->group(group);
  command.add_flag("--exhaustive", options.exhaustive, "With --record: every configuration")
      ->group(group);
  command.add_option("--points", options.points, "With --record: this number of random ones")
      ->group(group);
}

void check_recording_options(const RecordingOptions& options, const TuningOptions& tuning) {
  const auto refuse = [](const std::string& message) { throw CommandError(exit_usage, message); };
  if (options.file.empty()) {
    if (options.exhaustive)
      refuse("--exhaustive: only with --record; --strategy exhaustive searches");
    if (!options.points.empty()) refuse("--points: only with --record");
    return;
  }
  if (options.exhaustive != options.points.empty()) {
    refuse("--record: takes either --exhaustive or --points");
  }
  if (tuning.in_process) refuse("--in-process: not with --record");
  check_folder("--record", options.file);
}

int record(const Operation& operation, const Problem& problem, const SearchLimits& limits,
           const RecordingOptions& options, const TuningOptions& tuning) {
  const TunerOptions tuner = tuner_options(tuning);
  RecordOptions recording;
  recording.file = options.file;
  if (!options.exhaustive) recording.points = read_count("--points", options.points, UINT32_MAX);
  recording.seed = tuner.seed.value_or(standard_seed);
  recording.limits.cold = tuner.cold;
  recording.limits.measure_s = 0.2;
  catch_interrupts();
  const auto devices = select_safe_devices(tuning.device, tuning.db, tuning.allow_unsafe);
  const DeviceInfo& device = devices.front().info;
  if (auto fits = check_fits(operation, problem, device); !fits) throw bad_option(fits.failure());
  const Space whole = operation.space(problem, device);
  if (auto within = check_limits(whole, limits); !within) throw bad_option(within.failure());
  const Space space = limited(whole, limits);
  std::vector<CardLock> locks;
  if (tuner.lock) locks = lock_cards(devices, "greta-tune");
  const auto evaluators = open_evaluators(devices, tuning, tuner, recording.seed);
  std::vector<Evaluator*> members;
  for (const auto& evaluator : evaluators) members.push_back(evaluator.get());
  EvaluatorPool pool(members);
  Stopwatch since;
  const auto show = [&](const RecordProgress& progress) {
    if (tuning.quiet || since.seconds() < progress_s) return;
    since = {};
    tell(progress_text(progress));
  };
  const RecordProgress progress =
      value_of(record_space(pool, problem, space, recording, show, stop_requested()));
  answer_interrupt();
  print(stdout, "{}: {}\n", options.file.string(), progress_text(progress));
  return progress.complete() ? exit_done : exit_failed;
}

}  // namespace greta::tuner::cli
