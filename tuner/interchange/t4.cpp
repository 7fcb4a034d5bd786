#include "tuner/interchange/t4.hpp"

#include <cmath>

namespace greta::tuner {
namespace {

using nlohmann::json;

/// Returns the T4 outcome of a status; T4 has six.
const char* invalidity(const std::optional<Status>& failure) {
  if (!failure) return "correct";
  switch (*failure) {
    case Status::constraints:
    case Status::invalid_argument:
      return "constraints";
    case Status::compile:
      return "compile";
    case Status::correctness:
      return "correctness";
    case Status::timeout:
      return "timeout";
    default:
      return "runtime";
  }
}

json milliseconds(double us) {
  return us * 1e-3;
}

void add(json& list, const char* name, double value, const char* unit) {
  if (std::isfinite(value)) list.push_back({{"name", name}, {"value", value}, {"unit", unit}});
}

/// Returns the error name that Kernel Tuner writes in place of a failed configuration's time.
const char* error_name(Status failure) {
  switch (failure) {
    case Status::constraints:
    case Status::invalid_argument:
      return "InvalidConfig";
    case Status::compile:
      return "CompilationFailedConfig";
    default:
      return "RuntimeFailedConfig";
  }
}

json measurements_of(const Trial& trial) {
  json list = json::array();
  if (trial.failure) {
    list.push_back({{"name", "time"}, {"value", error_name(*trial.failure)}, {"unit", "ms"}});
    return list;
  }
  const Measurement& measurement = trial.measurement;
  add(list, "time", measurement.median_us * 1e-3, "ms");
  add(list, "time_low", measurement.low_us * 1e-3, "ms");
  add(list, "time_high", measurement.high_us * 1e-3, "ms");
  add(list, "error", trial.verdict.error, "");
  add(list, "error_bound", trial.verdict.bound, "");
  add(list, "raced", measurement.raced ? 1 : 0, "");
  for (const auto& kernel : trial.kernels) {
    add(list, "registers", kernel.statistics.registers, "");
    add(list, "shared_memory", kernel.statistics.shared_memory_bytes, "B");
    add(list, "scratch_memory", kernel.statistics.scratch_bytes, "B");
  }
  return list;
}

json result_of(const Trial& trial) {
  json configuration{{"variant", trial.config.variant}};
  for (const auto& [name, value] : trial.config.values) configuration[name] = value;
  json runtimes = json::array();
  for (const double us : trial.measurement.samples_us) {
    if (std::isfinite(us)) runtimes.push_back(milliseconds(us));
  }
  const auto spent = [](double seconds) { return std::isfinite(seconds) ? seconds * 1e3 : 0; };
  return {{"timestamp", trial.recorded_utc},
          {"configuration", configuration},
          {"objectives", {"time"}},
          {"times",
           // Tools read "compilation", although the published schema calls it "compilation_time".
           {{"compilation", spent(trial.compile_s)},
            {"compilation_time", spent(trial.compile_s)},
            {"framework", 0},
            {"search_algorithm", 0},
            {"validation", spent(trial.verify_s)},
            {"benchmark", spent(trial.measure_s)},
            {"runtimes", runtimes}}},
          {"invalidity", invalidity(trial.failure)},
          {"correctness", trial.failure == Status::correctness ? 0 : 1},
          {"measurements", measurements_of(trial)}};
}

}  // namespace

json t4_json(const StoredSession& session, const std::vector<Trial>& trials) {
  json results = json::array();
  const auto key = session.problem.key();
  for (const auto& trial : trials) {
    if (trial.problem_key == key) results.push_back(result_of(trial));  // no stand-ins
  }
  return {{"schema_version", "1.1.0"},
          {"metadata", {{"timeunit", "milliseconds"}}},
          {"results", results}};
}

}  // namespace greta::tuner
