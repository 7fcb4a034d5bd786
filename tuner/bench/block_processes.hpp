#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "db/safety.hpp"
#include "runtime/device/device_info.hpp"
#include "tuner/bench/benchmark.hpp"
#include "tuner/bench/kernel_benchmarks.hpp"

namespace greta::tuner {

/// Takes each block of samples of a benchmark in a new process, because times depend on where a
/// process places its code, threads and memory: those of host calls (Benchmark::calls), and those
/// of launches of some microseconds on a GPU. A process takes one block of several benchmarks. If
/// the device computes on the CPU, a process for calls is pinned to one core: waking threads on
/// other cores takes about ten times as long as the call and varies widely.
class BlockProcesses {
 public:
  struct Options {
    std::filesystem::path cache_directory;  ///< compiled kernels are found there
    KernelBenchmarks::Options kernels;      ///< without checker and trace
    Avoided avoid;                          ///< device features that kernels must not use
    bool vendor = false;                    ///< OpenOptions::vendor
    /// Once set, the process is killed and the block fails as `unavailable`. May be null.
    const std::atomic<bool>* stop = nullptr;
  };

  /// `command` starts a program that calls serve_blocks().
  BlockProcesses(std::vector<std::string> command, const DeviceInfo& device,
                 const Options& options);

  /// Returns the benchmark with its blocks taken in separate processes. This object must outlive
  /// it. It holds no memory of the device between blocks.
  Benchmark apart(Benchmark benchmark);
  /// Sets the names of the benchmarks of which blocks will be requested. Each process takes one
  /// block of each: first the calls in the same order, because the time of a call also depends on
  /// the process's earlier work, then the kernels in random order, so that their memory is placed
  /// differently.
  void expect(const std::vector<std::string>& names);

 private:
  struct Block {
    int count;  // requested number of samples
    Result<std::vector<double>> samples_us;
    Result<double> control_us;
    ProcessorTime processor;
  };
  struct Kernel {
    Problem problem;
    Config config;
  };

  bool is_waiting(const std::string& name, int count) const;
  Result<std::vector<double>> take(const std::string& name, int count);
  Result<void> run(const std::vector<std::string>& names, int count);
  std::string request(const std::vector<std::string>& names, int count);

  std::vector<std::string> command_;
  std::string device_;
  Options options_;
  bool on_cpu_;
  unsigned started_ = 0;
  std::map<std::string, Kernel> kernels_;            // key: name; benchmarks that are not calls
  std::map<std::string, std::deque<Block>> blocks_;  // key: name of an expected benchmark
  std::map<std::string, Block> last_;                // without samples
};

/// Returns whether the time of a kernel depends noticeably on the process: on a GPU, if it moves at
/// most 64 MiB. Where more memory is moved, which takes 16 µs or longer at 4 TB/s, the difference
/// of up to 0.35 µs is below 2 %. A kernel whose operands exceed 256 MiB is not included, because
/// each process creates them anew.
bool depends_on_process(const Benchmark& kernel, const DeviceInfo& device);

/// Runs such a process: takes a block of each benchmark that the request on standard input names,
/// and writes the blocks to standard output. After a benchmark that may have damaged the device it
/// takes no more. Returns an exit code.
int serve_blocks(const Catalog& catalog);

}  // namespace greta::tuner
