#include "tuner/cli/bench/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/device/system/utc.hpp"
#include "tuner/bench/benchmark_names.hpp"
#include "tuner/cli/bench/bundle.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/validate.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct DoctorOptions {
  std::string device;  ///< empty: all devices
  std::string timeout = "120";
  std::filesystem::path db;
  bool no_lock = false;
  std::filesystem::path bundle;  ///< empty: none
  bool bundle_named = false;     ///< whether --bundle was given
  bool yes = false;              ///< write it without confirmation
};

std::vector<ProbedDevice> all_devices() {
  std::vector<ProbedDevice> devices;
  for (Backend* backend : backends()) {
    for (const auto& device : backend->probe().devices) {
      if (device.usable) devices.push_back(device);
    }
  }
  if (devices.empty()) throw CommandError(exit_no_device, "no device can execute kernels");
  return devices;
}

/// Runs a check. On a CPU, whose time others may use, a timeout counts only if it occurs twice, the
/// second time with twice the time.
Health checked(const ProbedDevice& device, const std::string& check, std::chrono::seconds deadline,
               std::FILE* stream) {
  const auto run = [&](std::chrono::seconds time) {
    return check_health_apart({"/proc/self/exe", "check"}, check, device.info.id(),
                              default_cache_directory().string(), time, &stop_requested());
  };
  Health health = run(deadline);
  if (health.failure != Status::timeout || !device.info.is_cpu() || stop_requested()) return health;
  print_text(stream, format_row(check, fmt::format("timed out; once more with --timeout {}",
                                                   2 * deadline.count())));
  std::fflush(stream);
  health = run(2 * deadline);
  if (health.failure == Status::timeout)
    health.message += "; on a busy machine, a longer --timeout may help";
  return health;
}

/// Checks the devices, and adds each to `found` when it is finished. Returns the exit code on
/// success (end_of_writing()), and throws CommandError if a check failed.
int check_devices(const DoctorOptions& options, std::chrono::seconds deadline,
                  std::vector<DeviceHealth>& found) {
  const auto devices = options.device.empty() ? all_devices() : select_devices(options.device);
  check_results_database(options.db);
  const auto locks =
      options.no_lock ? std::vector<CardLock>{} : lock_cards(devices, "greta-bench doctor");
  TunedDb db = open_database(options.db, TunedDb::Mode::read_write);
  const auto checks = names_of(check_names());
  int failures = 0;
  for (const auto& device : devices) {
    found.push_back({device.info, run_doctor(device, db, checks, deadline, stdout)});
    failures += failures_of(found.back().checks);
  }
  const int code = end_of_writing(db, exit_done);
  if (stop_requested()) throw CommandError(exit_failed, "interrupted");
  if (failures == 0) return code;
  throw CommandError(exit_failed,
                     fmt::format("{} failed; without --allow-unsafe, the device or the features "
                                 "that these checks test are not used with this driver",
                                 format_count(static_cast<std::size_t>(failures), "check")));
}

/// The bundle is written whatever the outcome of the checks.
int doctor_with_bundle(const DoctorOptions& options, std::chrono::seconds deadline) {
  Bundle bundle(options.bundle, options.yes, deadline);
  std::vector<DeviceHealth> found;
  std::optional<CommandError> end;
  int code = exit_done;
  if (const auto died = bundle.probe(); !died.empty()) {  // this process would crash as well
    end.emplace(exit_failed, "listing devices failed: " + died);
  } else {
    try {
      code = check_devices(options, deadline, found);
    } catch (const CommandError& error) {
      if (error.code() == exit_usage || stop_requested()) throw;
      end = error;
    } catch (const Error& error) {
      end.emplace(exit_failed, error.what());
    }
  }
  bundle.add(found, end ? end->what() : "");
  if (stop_requested()) throw CommandError(exit_failed, "interrupted");
  bundle.write();
  if (end) throw CommandError(*end);
  return code;
}

int doctor(const DoctorOptions& options) {
  const auto deadline = std::chrono::seconds(read_count("--timeout", options.timeout, 100'000));
  if (options.bundle_named && options.bundle.empty()) {
    throw CommandError(exit_usage, "--bundle: the name is empty");
  }
  if (options.yes && options.bundle.empty())
    throw CommandError(exit_usage, "--yes: only with --bundle");
  catch_interrupts();
  if (!options.bundle.empty()) return doctor_with_bundle(options, deadline);
  std::vector<DeviceHealth> found;
  return check_devices(options, deadline, found);
}

}  // namespace

int failures_of(const std::vector<Health>& checks) {
  return static_cast<int>(std::count_if(checks.begin(), checks.end(), [](const Health& health) {
    return health.failure.has_value();
  }));
}

std::vector<Health> run_doctor(const ProbedDevice& device, TunedDb& db,
                               const std::vector<std::string>& checks,
                               std::chrono::seconds deadline, std::FILE* stream) {
  print(stream, "{} {}\n", device.info.id(), device.info.name);
  std::vector<Health> found;
  bool usable = true;
  for (const auto& check : checks) {
    if (stop_requested()) break;
    if (!usable) {
      print_text(stream, format_row(check, "skipped"));
      continue;
    }
    const Health health = checked(device, check, deadline, stream);
    if (stop_requested()) break;  // the check may have been interrupted as well
    print_text(stream, format_row(check, health_text(health)));
    std::fflush(stream);
    found.push_back(health);
    if (!health.failure) {
      db.clear_unsafe(device.info, check);
      continue;
    }
    const UnsafePart part{
        check, std::string(to_string(*health.failure)), health.message, {}, utc_now()};
    db.set_unsafe(device.info, part);
    usable = !avoided({part}).device;
  }
  return found;
}

void add_doctor_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "doctor", "Check each device's health, and record devices and features that are unsafe");
  auto options = std::make_shared<DoctorOptions>();
  options->db = default_database();
  command->add_option("--device", options->device, "Only these, as vulkan:0,hip:0");
  add_validate_option(*command, options->device);
  command->add_option("--timeout", options->timeout, "Timeout of a check in seconds")
      ->capture_default_str();
  command->add_option("--db", options->db, "Database that records failed checks")
      ->capture_default_str();
  command->add_flag("--no-lock", options->no_lock,
                    "Don't wait for a tool that measures on the same card");
  const auto* bundle = command->add_option(
      "--bundle", options->bundle,
      "Pack the findings into this .tar.gz, for a developer elsewhere (docs/first-amd-run.md)");
  command->add_flag("--yes", options->yes, "Write the bundle without asking");
  command->footer(
      "Examples:\n  greta-bench doctor\n  greta-bench doctor --device vulkan:0\n"
      "  greta-bench doctor --bundle first-run.tar.gz");
  command->callback([&action, options, bundle] {
    options->bundle_named = bundle->count() > 0;
    action = [options] { return doctor(*options); };
  });
}

void add_check_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("check", "Run one health check in this process (internal)");
  command->group("");  // hidden
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("words", *words, "Check, device, cache directory, seconds of a launch")
      ->expected(4);
  command->callback([&action, words] {
    action = [words] {
      EvaluatorOptions options;
      options.device = words->at(1);
      options.cache_directory = words->at(2);
      return serve_health_check(words->at(0), options,
                                static_cast<double>(read_count("seconds", words->at(3), 100'000)));
    };
  });
}

}  // namespace greta::tuner::cli
