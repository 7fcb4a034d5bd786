#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"
#include "tuner/bench/benchmark.hpp"

namespace greta::tuner {

/// Takes the samples of calls (Benchmark::calls) in processes of their own, a new one for each
/// block, as what a call takes depends on where a process's code, threads and memory lie. Where the
/// device computes on the CPU such a process stays on one core: waking threads on others takes the
/// system ten times as long as the call takes, and never twice the same.
class CallProcesses {
 public:
  /// `command` starts a program that calls serve_calls().
  CallProcesses(std::vector<std::string> command, const DeviceInfo& device,
                std::filesystem::path cache_directory);

  /// The benchmark with its blocks from such processes. This must outlive it.
  Benchmark apart(Benchmark benchmark);
  /// The benchmarks, by name, of which blocks will be taken from now on: each process takes one of
  /// all of them, as what a call takes also depends on what its process did before.
  void expect(const std::vector<std::string>& names);

 private:
  struct Block {
    int count;  // samples that were asked for
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
  std::map<std::string, std::deque<Block>> blocks_;  // of all that are expected
  std::map<std::string, Result<double>> last_control_us_;
};

/// What such a process does: takes a block of each benchmark that the request on standard input
/// names, and writes them to standard output. Returns an exit code.
int serve_calls();

}  // namespace greta::tuner
