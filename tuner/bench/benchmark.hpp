#pragma once

#include <functional>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// CPU time in µs of a device that computes on the CPU, summed over its threads.
struct ProcessorTime {
  std::vector<double> samples_us;  ///< one per launch of the last block
  double control_us = 0;           ///< time of the last control
};

/// Something that can be timed repeatedly: its description and functions that take samples. The
/// functions own what they need and may be called in any order.
struct Benchmark {
  enum class Kind { kernel, platform, runtime };

  Kind kind = Kind::kernel;
  Subject subject;
  Work work;  ///< work of one sample
  /// Checks the results on inputs of this run, as a trial that is not timed. Null if there is
  /// nothing to check.
  std::function<Trial(int run)> check{};
  /// Takes `count` samples in µs. The first call does the set-up.
  std::function<Result<std::vector<double>>(int count)> take{};
  /// Returns whether a block of so many samples is measured already, so that take() returns at
  /// once. Null: never.
  std::function<bool(int count)> waiting{};
  /// Times constant work beside a block in µs, to reveal changes of the machine's speed. Null:
  /// none.
  std::function<Result<double>()> control{};
  /// CPU time of the last calls of take() and control(). Null: not a device on the CPU.
  std::function<ProcessorTime()> processor{};
  bool calls = false;              ///< host calls, whose time depends on the process
  bool apart = false;              ///< each block is taken in a separate process
  double roofline_us = 0;          ///< roofline time; 0: unknown
  std::uint64_t device_bytes = 0;  ///< memory that is held between calls

  /// Returns "kernel/gemm/f32/m=128,n=128,k=128/winner": kind, operation, types, problem,
  /// attributes and origin, without spaces.
  std::string name() const;
};

/// Checks a benchmark if it can be checked. Stores the verdict and a failure in `result`. Returns
/// whether it is correct.
bool check_benchmark(const Benchmark& benchmark, int run, MeasuredResult& result);

/// Completes the result of a benchmark whose verdict and samples, or failure, are known.
MeasuredResult finished_result(const Benchmark& benchmark, MeasuredResult result);

}  // namespace greta::tuner
