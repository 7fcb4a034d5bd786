#include "tuner/cli/db/export_binaries.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "kernels/chains/chains.hpp"
#include "runtime/device/system/temporary_folder.hpp"
#include "tuner/cli/program/captured_files.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/compile/carried_binaries.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Returns the devices of an architecture.
std::vector<DeviceInfo> devices_of(const Contents& contents, const std::string& architecture) {
  std::vector<DeviceInfo> devices;
  std::set<std::string> others;
  for (const StoredDevice& device : contents.devices) {
    if (device.info.architecture == architecture) devices.push_back(device.info);
    others.insert(device.info.architecture);
  }
  if (!devices.empty()) return devices;
  throw CommandError(
      exit_usage,
      fmt::format("--binaries {}: the database has devices of {}", architecture,
                  others.empty() ? "no architecture" : fmt::format("{}", fmt::join(others, ", "))));
}

std::vector<Problem> captured_problems(const BinaryExport& options, const Catalog& catalog) {
  std::vector<Problem> problems;
  if (options.captures.empty()) return problems;
  try {
    const CapturedWork work = read_captured(options.captures, catalog, "compile", false);
    for (const WeightedProblem& each : work.problems) problems.push_back(each.problem);
  } catch (const CommandError& error) {
    throw CommandError(error.code(), std::string("--problems ") + error.what());
  }
  return problems;
}

/// Returns the kernels that run on a device, with a database as an application's.
std::vector<KernelSource> kernels_on(const DeviceInfo& device,
                                     const std::filesystem::path& database,
                                     const std::vector<Problem>& problems, const Catalog& catalog) {
  WantedKernels wanted;
  LookupOptions options;
  options.catalog = catalog;
  for (const auto& shipped : {std::filesystem::path(), folder_of_shipped()}) {
    LookupFiles files = LookupFiles::none();
    files.application = {database};
    files.shipped = shipped;
    const Lookup lookup = Lookup::open(device, files, options);
    for (const Problem& problem : problems) wanted.add(lookup, problem);
  }
  return wanted.sources();
}

}  // namespace

void add_binaries(Contents& contents, const BinaryExport& options) {
  if (options.architectures.empty()) return;
  const Catalog catalog = known_operations();
  const std::vector<Problem> captured = captured_problems(options, catalog);
  const TemporaryFolder folder = TemporaryFolder::make("greta-ship").value();
  const auto draft = folder.path() / "draft.db";
  TunedDb::ship(contents, draft);
  for (const std::string& architecture : options.architectures) {
    for (const DeviceInfo& device : devices_of(contents, architecture)) {
      std::vector<Problem> problems = captured;
      for (const StoredWinner& result : contents.results) {
        if (result.device.fingerprint() != device.fingerprint()) continue;
        if (!is_chain(result.problem.op)) problems.push_back(result.problem);
      }
      const auto sources = kernels_on(device, draft, problems, catalog);
      tell(fmt::format("{}: compiling {}", device.name,
                       format_count(static_cast<std::int64_t>(sources.size()), "kernel")));
      auto compiler = create_binary_compiler(device, {});
      if (!compiler) {
        throw CommandError(exit_failed, fmt::format("--binaries {}: {}", architecture,
                                                    compiler.failure().message));
      }
      auto binaries = compile_binaries(sources, **compiler);
      if (!binaries) {
        throw CommandError(exit_failed, fmt::format("--binaries {}: {}", architecture,
                                                    binaries.failure().message));
      }
      std::move(binaries->begin(), binaries->end(), std::back_inserter(contents.binaries));
    }
  }
}

std::string binaries_text(const std::vector<BinaryTotals>& totals) {
  std::string text;
  for (const BinaryTotals& one : totals) {
    text += fmt::format("{}{} compiled for {} ({})", text.empty() ? "" : ", ",
                        format_count(one.count, "kernel"), one.target,
                        format_bytes(static_cast<double>(one.bytes)));
  }
  return text;
}

}  // namespace greta::tuner::cli
