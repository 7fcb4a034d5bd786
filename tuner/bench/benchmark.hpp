#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/result.hpp"
#include "tuner/report/csv.hpp"

namespace greta::tuner {

/// How long the threads of a device that computes on the CPU ran, µs, all of them together.
struct ProcessorTime {
  std::vector<double> samples_us;  ///< for each launch of the last block
  double control_us = 0;           ///< for the last control
};

/// Something that can be timed over and over: what it is, and how to take samples of it. The
/// functions hold what they need, and may be called in any order.
struct Benchmark {
  std::string kind;  ///< "kernel", "platform" or "runtime"
  CsvRow row;        ///< its identity: operation, types, problem, config, origin, device, cache
  Work work;         ///< of one sample
  /// Checks that it does what it should, on inputs of this run's own, and fills in what the row
  /// says of that; null where there is nothing to check.
  std::function<Result<void>(CsvRow& row, int run)> check{};
  /// Takes so many samples, µs. The first call gets everything ready.
  std::function<Result<std::vector<double>>(int count)> take{};
  /// Time of steady work beside a block, µs: what became of the machine. Null: none.
  std::function<Result<double>()> control{};
  /// Of the last calls of take() and control(). Null: not a device on the CPU.
  std::function<ProcessorTime()> processor{};
  bool calls = false;      ///< of the host: what they take depends on the process they are made in
  bool apart = false;      ///< each block is of a process of its own
  double roofline_us = 0;  ///< the shortest time that the device's ceilings allow; 0: unknown
  std::uint64_t device_bytes = 0;  ///< of memory that is held between calls

  /// "kernel/gemm/f32/m=128,n=128,k=128/winner": kind, operation, types, problem, attributes and
  /// origin, without spaces.
  std::string name() const;
};

/// What became of a benchmark.
struct BenchmarkOutcome {
  std::vector<std::vector<double>> blocks_us;  ///< each taken at another time
  std::vector<double> control_us;              ///< beside each block; empty: none
  std::vector<std::vector<double>> cpu_us;     ///< ProcessorTime's, of each block
  std::vector<double> cpu_control_us;
  std::string failure;        ///< one line; empty: none
  std::string status = "ok";  ///< the failure's kind, as CsvRow::status
  int clean_runs = 0;         ///< runs that were checked and found right

  void fail(const Failure& why);
};

/// The row of a benchmark with its figures.
CsvRow finished_row(const Benchmark& benchmark, const BenchmarkOutcome& outcome,
                    const std::string& date, const std::string& clocks);

}  // namespace greta::tuner
