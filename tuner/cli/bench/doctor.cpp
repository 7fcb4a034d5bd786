#include "tuner/cli/bench/doctor.hpp"

#include <fmt/format.h>

#include "runtime/device/utc.hpp"
#include "tuner/bench/names.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/checks.hpp"
#include "tuner/cli/damage.hpp"
#include "tuner/cli/interrupt.hpp"
#include "tuner/cli/locks.hpp"
#include "tuner/cli/numbers.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/tuning.hpp"
#include "tuner/report/format.hpp"

namespace greta {
namespace {

struct DoctorOptions {
  std::string device;  ///< empty: all that there are
  std::string timeout = "120";
  std::filesystem::path db;
  bool no_lock = false;
};

std::string health_text(const Health& health) {
  if (!health.applies) return "does not apply: " + health.message;
  if (!health.failure) return "passed: " + health.message;
  return fmt::format("FAILED, {}: {}", to_string(*health.failure), health.message);
}

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

int doctor(const DoctorOptions& options) {
  const auto deadline = std::chrono::seconds(read_count("--timeout", options.timeout, 100'000));
  const auto devices = options.device.empty() ? all_devices() : select_devices(options.device);
  catch_interrupts();
  const auto locks =
      options.no_lock ? std::vector<CardLock>{} : lock_cards(devices, "greta-bench doctor");
  TunedDb db = open_database(options.db, TunedDb::Mode::read_write);
  const auto checks = names_of(check_names());
  int failures = 0;
  for (const auto& device : devices) failures += run_doctor(device, db, checks, deadline, stdout);
  const int code = end_of_writing(db, exit_done);
  if (stop_requested()) throw CommandError(exit_failed, "interrupted");
  if (failures == 0) return code;
  throw CommandError(exit_failed,
                     fmt::format("{} failed; what they stand for is not used on that device with "
                                 "its driver, unless --allow-unsafe is given",
                                 format_count(static_cast<std::size_t>(failures), "check")));
}

}  // namespace

int run_doctor(const ProbedDevice& device, TunedDb& db, const std::vector<std::string>& checks,
               std::chrono::seconds deadline, std::FILE* stream) {
  fmt::print(stream, "{} {}\n", device.info.id(), device.info.name);
  int failures = 0;
  bool usable = true;
  for (const auto& check : checks) {
    if (stop_requested()) break;
    if (!usable) {
      fmt::print(stream, "{}", format_row(check, "left out"));
      continue;
    }
    const Health health = check_health_apart({"/proc/self/exe", "check"}, check, device.info.id(),
                                             default_cache_directory().string(), deadline);
    if (stop_requested()) break;  // the check may have been interrupted, too
    fmt::print(stream, "{}", format_row(check, health_text(health)));
    std::fflush(stream);
    if (!health.failure) {
      db.clear_unsafe(device.info, check);
      continue;
    }
    ++failures;
    const UnsafePart part{
        check, std::string(to_string(*health.failure)), health.message, {}, utc_now()};
    db.set_unsafe(device.info, part);
    usable = !avoided({part}).device;
  }
  return failures;
}

void add_doctor_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("doctor", "Check each device's health, and record what must not be used");
  auto options = std::make_shared<DoctorOptions>();
  options->db = default_database();
  command->add_option("--device", options->device, "Only these, as vulkan:0,hip:0");
  command->add_option("--timeout", options->timeout, "Seconds that a check may take")
      ->capture_default_str();
  command->add_option("--db", options->db, "Database that keeps what failed")
      ->capture_default_str();
  command->add_flag("--no-lock", options->no_lock,
                    "Don't wait for a tool that measures on the same card");
  command->footer("Examples:\n  greta-bench doctor\n  greta-bench doctor --device vulkan:0");
  command->callback([&action, options] { action = [options] { return doctor(*options); }; });
}

void add_check_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("check", "Run one health check in this process (internal)");
  command->group("");  // hidden
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("words", *words, "Check, device and cache directory")->expected(3);
  command->callback([&action, words] {
    action = [words] {
      EvaluatorOptions options;
      options.device = words->at(1);
      options.cache_directory = words->at(2);
      return serve_health_check(words->at(0), options);
    };
  });
}

}  // namespace greta
