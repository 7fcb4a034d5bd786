#pragma once

#include <functional>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// How long the threads of a device that computes on the CPU ran, µs, all of them together.
struct ProcessorTime {
  std::vector<double> samples_us;  ///< for each launch of the last block
  double control_us = 0;           ///< for the last control
};

/// Something that can be timed over and over: what it is, and how to take samples of it. The
/// functions hold what they need, and may be called in any order.
struct Benchmark {
  enum class Kind { kernel, platform, runtime };

  Kind kind = Kind::kernel;
  Subject subject;
  Work work;  ///< of one sample
  /// Checks that it computes what it should, on inputs of this run's own: a trial that is not
  /// timed. Null where there is nothing to check.
  std::function<Trial(int run)> check{};
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

/// Checks a benchmark that can be checked. Its result keeps the verdict, and the failure if there
/// is one. Returns whether it is right.
bool check_benchmark(const Benchmark& benchmark, int run, MeasuredResult& result);

/// The result of a benchmark whose samples, or why there are none, and verdict are known: adds what
/// follows from them.
MeasuredResult finished_result(const Benchmark& benchmark, MeasuredResult result);

}  // namespace greta::tuner
