#include "tuner/evaluate/sanitized_case.hpp"

#include <fmt/format.h>

#include "runtime/device/system/log.hpp"
#include "runtime/device/system/sanitizing.hpp"
#include "tuner/diagnose/failed_case.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"

namespace greta::tuner {
namespace {

/// Returns the two accesses of a race detector's report, the later one first: "WRITE after READ: ".
std::string accesses_of(const std::string& report) {
  constexpr std::string_view by = " by thread ", earlier = "previous ";
  std::string found;
  for (std::size_t at = 0; (at = report.find(by, at)) != std::string::npos; at += by.size()) {
    const auto line = report.rfind('\n', at) + 1;  // npos + 1 is 0
    std::string access = report.substr(line, at - line);
    if (access.starts_with(earlier)) access = access.substr(earlier.size());
    found += (found.empty() ? "" : " after ") + access;
  }
  return found.empty() ? found : found + ": ";
}

/// Returns the report of a sanitizer on a case's candidate; empty if there is none.
std::string report_of(const FailedCase& failed, const Catalog& catalog, Sanitize sanitize,
                      EvaluatorOptions options, const std::vector<std::string>& worker) {
  options.sanitize = sanitize;
  WorkerEvaluator evaluator(worker, options);
  const Problem problem = catalog.read(failed.kernel.problem).value();
  const Space space = catalog.at(problem.op).space(problem, evaluator.device());
  const auto config = space.parse(failed.kernel.config);
  if (!config) return {};
  TrialLimits limits;
  limits.inputs = failed.style;
  const Trial trial = evaluator.verify(problem, *config, failed.seed, limits);
  if (trial.failure != Status::crash) return {};
  const std::string summary = sanitizer_summary(trial.log);
  // The race detector's process may end by an invalid access, which is no race.
  if (sanitize == Sanitize::races && summary.find("data-race") == std::string::npos) return {};
  return summary.empty() ? summary : accesses_of(trial.log) + summary;
}

void add_reports(const std::filesystem::path& folder, const Catalog& catalog,
                 EvaluatorOptions options, const std::vector<std::string>& worker) {
  const FailedCase failed = read_failed_case(catalog, folder).value();
  options.device = failed.device.substr(0, failed.device.find(' '));
  if (!options.device.starts_with("hip-host:")) return;
  add_findings(folder, {.ran = true,
                        .race = report_of(failed, catalog, Sanitize::races, options, worker),
                        .access = report_of(failed, catalog, Sanitize::address, options, worker)});
}

}  // namespace

void add_sanitizer_reports(const std::filesystem::path& folder, const Catalog& catalog,
                           const std::vector<std::string>& worker,
                           const std::filesystem::path& cache_directory) {
  if (!sanitizer_environment({})) return;
  EvaluatorOptions options;
  options.catalog = catalog;
  options.cache_directory = cache_directory;
  try {
    add_reports(folder, catalog, options, worker);
  } catch (const Error& error) {
    log(LogLevel::warning, "{}: not run under sanitizers: {}", folder.string(), error.what());
  }
}

}  // namespace greta::tuner
