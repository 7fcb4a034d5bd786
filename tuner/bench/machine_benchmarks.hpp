#pragma once

#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/bench/benchmark.hpp"

namespace greta::tuner {

/// Returns benchmarks of the machine's and the device's limits and costs; `names` come from
/// platform_names(). The device must outlive them. Bandwidths count bytes read and written.
std::vector<Benchmark> platform_benchmarks(Device& device, const std::vector<std::string>& names);

/// Returns benchmarks of the runtime's calls on a device; `names` come from runtime_names(). The
/// device must outlive them.
std::vector<Benchmark> runtime_benchmarks(Device& device, const std::vector<std::string>& names);

/// Sizes of the benchmark, e.g. {{"bytes", 4096}}.
using Sizes = decltype(Problem::dims);

/// Returns a benchmark without a kernel from the catalog. `bytes` is the number of bytes moved by a
/// sample.
Benchmark machine_benchmark(const Device& device, Benchmark::Kind kind, const std::string& name,
                            Sizes sizes, double bytes);

}  // namespace greta::tuner
