#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/device/device.hpp"
#include "tuner/bench/benchmark.hpp"

namespace greta::tuner {

class PeerPairs;

/// Returns the devices that a device can copy to and from: usable ones of its API and its driver,
/// without itself. An API may have several drivers, as HIP has AMD's and NVIDIA's.
std::vector<ProbedDevice> peers_among(const DeviceInfo& device,
                                      const std::vector<ProbedDevice>& all);
/// The same of this machine's devices.
std::vector<ProbedDevice> peers_of(const DeviceInfo& device);

/// Returns whether a name of platform_names() is of copies between devices.
bool is_of_peers(const std::string& name);
/// Returns the cards that benchmarks of these platform_names() use: the devices, some of them maybe
/// twice, and their peers if a name is of peers.
std::vector<ProbedDevice> cards_of(std::vector<ProbedDevice> devices,
                                   const std::vector<std::string>& names);

/// Returns why there are no copies between this device and others; empty if there are.
std::string why_no_peers(Device& device);

/// Returns the memory that a device's benchmarks of peers share. The device must outlive it.
std::shared_ptr<PeerPairs> peer_pairs(Device& device);

/// Returns a benchmark for each peer of a device: "peer_write", "peer_read", "peer_both_ways" or
/// "peer_latency". None if why_no_peers() names a reason. The other devices are opened for the
/// first block.
std::vector<Benchmark> peer_benchmarks(Device& device, const std::string& name,
                                       const std::shared_ptr<PeerPairs>& pairs);

}  // namespace greta::tuner
