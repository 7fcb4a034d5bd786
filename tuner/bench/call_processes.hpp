#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"
#include "tuner/bench/benchmark.hpp"

namespace greta::tuner {

/// Takes the samples of host calls (Benchmark::calls) in a new process for each block, because the
/// time of a call depends on where a process places its code, threads and memory. If the device
/// computes on the CPU, the process is pinned to one core: waking threads on other cores takes
/// about ten times as long as the call and varies widely.
class CallProcesses {
 public:
  /// `command` starts a program that calls serve_calls().
  CallProcesses(std::vector<std::string> command, const DeviceInfo& device,
                std::filesystem::path cache_directory);

  /// Returns the benchmark with its blocks taken in separate processes. This object must outlive
  /// it.
  Benchmark apart(Benchmark benchmark);
  /// Sets the names of the benchmarks of which blocks will be requested. Each process takes one
  /// block of each, because the time of a call also depends on the process's earlier work.
  void expect(const std::vector<std::string>& names);

 private:
  struct Block {
    int count;  // requested number of samples
    Result<std::vector<double>> samples_us;
    Result<double> control_us;
  };

  Result<std::vector<double>> take(const std::string& name, int count);
  Result<void> run(const std::vector<std::string>& names, int count);

  std::vector<std::string> command_;
  std::string device_;
  std::filesystem::path cache_directory_;
  bool on_one_core_;
  int started_ = 0;
  std::map<std::string, std::deque<Block>> blocks_;  // key: name of an expected benchmark
  std::map<std::string, Result<double>> last_control_us_;
};

/// Runs such a process: takes a block of each benchmark that the request on standard input names,
/// and writes the blocks to standard output. Returns an exit code.
int serve_calls();

}  // namespace greta::tuner
