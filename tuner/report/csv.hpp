#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "db/measurement.hpp"
#include "kernels/model/operation.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::tuner {

/// Bytes that a CSV file may have that is read or continued.
inline constexpr std::uint64_t most_csv_bytes = std::uint64_t{256} << 20;

/// One row of GRETA's CSV files, the same for tuning and benchmarks; columns in docs/csv.md. Text
/// that does not apply is empty, and so is a number that is 0.
struct CsvRow {
  std::string op, dtype, out_dtype, problem, attributes;
  std::string backend, device, config, origin, status;
  double us = 0, low_us = 0, high_us = 0, p99_us = 0, spread_pct = 0;
  double tflops = 0, gbps = 0, roofline = 0;
  double error = 0, bound = 0;
  double speedup = 0, speedup_low = 0, speedup_high = 0;
  std::string cache;  ///< "cold" or "warm"
  std::size_t samples = 0;
  std::string driver, compiler, greta_version, date, clocks;
  /// Every timed sample, in blocks that were taken apart in time, in the order taken; µs.
  std::vector<std::vector<double>> blocks_us;
  /// Beside each block, the time of work that stays the same; µs. Empty where there was none.
  std::vector<double> control_us;
  /// On a device that computes on the CPU: how long its threads ran for each launch of a block, and
  /// for the work beside it, µs.
  std::vector<std::vector<double>> cpu_us;
  std::vector<double> cpu_control_us;
  std::size_t processes = 0;  ///< that the samples are of, where each block is of another one

  /// Whether the configuration came from a database, as a winner or as another's that was looked
  /// up.
  bool from_database() const;
  void set_problem(const Problem& what);
  void set_device(const DeviceInfo& where);
  /// Times, with their samples as one block.
  void set_measurement(const Measurement& measurement);
  void set_verdict(const Verdict& verdict);
  /// Rates, of `us`.
  void set_work(const Work& work);
};

/// The first line of every CSV file.
std::string csv_header();
/// A row as a line. Samples have five digits, other numbers six.
std::string csv_line(const CsvRow& row);

/// The rows of a file. A failure is one line that names the file, and the line in it where one is
/// wrong. Columns that older versions did not have, the last ones, may be missing.
Result<std::vector<CsvRow>> read_csv(const std::filesystem::path& file);

/// Appends rows to a file, behind the header where it is new. Its folder is created.
Result<void> append_csv(const std::filesystem::path& file, const std::vector<CsvRow>& rows);

}  // namespace greta::tuner
