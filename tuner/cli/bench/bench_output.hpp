#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tuner/bench/preset.hpp"
#include "tuner/cli/bench/device_bench.hpp"
#include "tuner/cli/bench/options.hpp"
#include "tuner/cli/bench/table.hpp"

namespace greta::tuner::cli {

/// Writes the files of a run: the CSV files of --export and the page of --report.
class BenchOutput {
 public:
  using Devices = std::vector<std::unique_ptr<DeviceBench>>;

  /// `date` is the start of the run, UTC, as utc_now() returns it. The references must outlive this
  /// object.
  BenchOutput(const BenchOptions& options, const Preset& preset, const std::string& date)
      : options_(options), preset_(preset), date_(date) {}

  /// Appends the rows of each device to its file. Throws CommandError if it can't be written.
  void write(const std::vector<NamedResult>& rows, const Devices& devices) const;
  /// Writes the report of the database and of the exported files.
  void write_page(const Devices& devices) const;

 private:
  std::filesystem::path file_of(const DeviceInfo& device) const;

  const BenchOptions& options_;
  const Preset& preset_;
  const std::string& date_;
};

}  // namespace greta::tuner::cli
