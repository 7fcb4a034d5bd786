#pragma once

#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/bench/benchmark.hpp"

namespace greta::tuner {

/// Returns why there are no copies between this device and others; empty if there are.
std::string why_no_peers(Device& device);

/// Returns a benchmark for each other device of the same API: "peer_write", "peer_read",
/// "peer_both_ways" or "peer_latency". None if why_no_peers() names a reason. The device must
/// outlive them; the other ones are opened for the first block.
std::vector<Benchmark> peer_benchmarks(Device& device, const std::string& name);

}  // namespace greta::tuner
