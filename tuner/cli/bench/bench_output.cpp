#include "tuner/cli/bench/bench_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tuner/cli/program/report_page.hpp"
#include "tuner/cli/program/revision.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

// Returns the folder of a card in results/: "nvidia-h200"; "lavapipe" for a CPU device.
std::string folder_name(const DeviceInfo& device) {
  std::string name;
  for (const char c : device.is_cpu() ? device.architecture : device.name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name.substr(0, name.find_last_not_of('-') + 1);
}

}  // namespace

std::filesystem::path BenchOutput::file_of(const DeviceInfo& device) const {
  if (!options_.export_file.empty()) return options_.export_file;
  std::string date = date_;
  date.erase(std::remove(date.begin(), date.end(), ':'), date.end());
  return std::filesystem::path("results") / folder_name(device) /
         fmt::format("{}_{}.csv", date, preset_.name);
}

void BenchOutput::write(const std::vector<NamedResult>& rows, const Devices& devices) const {
  for (const auto& device : devices) {
    std::vector<MeasuredResult> own;
    for (const auto& [name, result] : rows) {
      const Subject& subject = result.subject;
      if (subject.backend == to_string(device->info().backend) &&
          subject.device == device->info().name) {
        own.push_back(result);
        own.back().preset = preset_.name;
      }
    }
    const auto file = file_of(device->info());
    if (const auto written = export_csv(file, own); !written) {
      throw CommandError(exit_failed, "--export " + written.failure().message);
    }
    tell(fmt::format("{} in {}", format_count(own.size(), "row"), file.string()));
  }
}

void BenchOutput::write_page(const Devices& devices) const {
  ReportFiles files{.databases = {options_.db}};
  for (const auto& device : devices) {
    const auto file = file_of(device->info());
    const bool listed =
        std::find(files.baselines.begin(), files.baselines.end(), file) != files.baselines.end();
    if (!listed && std::filesystem::exists(file)) files.baselines.push_back(file);
  }
  write_report(files, options_.report);
  tell("report: " + options_.report.string());
}

}  // namespace greta::tuner::cli
