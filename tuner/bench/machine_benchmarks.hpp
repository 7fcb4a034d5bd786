#pragma once

#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/bench/benchmark.hpp"

namespace greta::tuner {

/// Limits and costs of the machine and of one device: `names` of platform_names(). The device must
/// outlive them. Bandwidths count bytes read and written.
std::vector<Benchmark> platform_benchmarks(Device& device, const std::vector<std::string>& names);

/// Costs of the runtime's calls on a device: `names` of runtime_names(). The device must outlive
/// them.
std::vector<Benchmark> runtime_benchmarks(Device& device, const std::vector<std::string>& names);

/// Sizes of what is measured, as {{"bytes", 4096}}.
using Sizes = decltype(Problem::dims);

/// A benchmark without a kernel from the catalog. `bytes`: moved by a sample.
Benchmark machine_benchmark(const Device& device, Benchmark::Kind kind, const std::string& name,
                            Sizes sizes, double bytes);

}  // namespace greta::tuner
