#include "tuner/bench/peer_benchmarks.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/device/backend.hpp"
#include "tuner/bench/device_work.hpp"
#include "tuner/bench/host_timer.hpp"
#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/bench/peer_pair.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t latency_bytes = 4;

std::size_t buffer_bytes(const DeviceInfo& device) {
  return device.is_cpu() ? std::size_t{8} << 20 : std::size_t{256} << 20;
}

using Record = Result<void> (PeerPair::*)(std::size_t bytes);

/// Times copies of a pair, one after the other.
Result<std::vector<double>> take_copies(PeerPair& pair, Record record, std::size_t bytes,
                                        HostTimer& timer, int count) {
  return timer.take(count, [&](int calls) -> Result<void> {
    for (int i = 0; i < calls; ++i) {
      if (auto recorded = (pair.*record)(bytes); !recorded) return recorded;
      if (auto ran = pair.run(); !ran) return ran;
    }
    return {};
  });
}

/// The time of a benchmark, which runs once before.
struct PeerTimer {
  HostTimer timer;
  bool warm = false;
};

}  // namespace

std::vector<ProbedDevice> peers_among(const DeviceInfo& device,
                                      const std::vector<ProbedDevice>& all) {
  std::vector<ProbedDevice> peers;
  if (device.backend == Api::vulkan) return peers;  // it has no such copies (PeerCopies)
  for (const ProbedDevice& other : all) {
    const DeviceInfo& info = other.info;
    const bool alike = info.backend == device.backend && info.vendor == device.vendor &&
                       info.driver == device.driver;
    if (other.usable && alike && info.index != device.index) peers.push_back(other);
  }
  return peers;
}

std::vector<ProbedDevice> peers_of(const DeviceInfo& device) {
  for (Backend* const backend : backends()) {
    if (backend->api() == device.backend) return peers_among(device, backend->probe().devices);
  }
  return {};
}

std::vector<ProbedDevice> cards_of(std::vector<ProbedDevice> devices,
                                   const std::vector<std::string>& names) {
  if (std::none_of(names.begin(), names.end(), is_of_peers)) return devices;
  const std::vector<ProbedDevice> own = devices;
  for (const ProbedDevice& device : own) {
    const auto peers = peers_of(device.info);
    devices.insert(devices.end(), peers.begin(), peers.end());
  }
  return devices;
}

bool is_of_peers(const std::string& name) {
  return name.starts_with("peer_");
}

std::string why_no_peers(Device& device) {
  if (const auto copies = peer_copies(device); !copies) return copies.failure().message;
  if (peers_of(device.info()).empty()) return "there is one card";
  return {};
}

std::shared_ptr<PeerPairs> peer_pairs(Device& device) {
  return std::make_shared<PeerPairs>(device, buffer_bytes(device.info()));
}

std::vector<Benchmark> peer_benchmarks(Device& device, const std::string& name,
                                       const std::shared_ptr<PeerPairs>& pairs) {
  std::vector<Benchmark> list;
  if (!why_no_peers(device).empty()) return list;
  const DeviceInfo& info = device.info();
  const bool latency = name == "peer_latency", both = name == "peer_both_ways";
  const std::size_t bytes = latency ? latency_bytes : buffer_bytes(info);
  const Record record = both                  ? &PeerPair::both_ways
                        : name == "peer_read" ? &PeerPair::read
                                              : &PeerPair::write;
  for (const ProbedDevice& peer : peers_of(info)) {
    auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, name,
                                       {{"bytes", bytes}, {"peer", peer.info.index}},
                                       static_cast<double>(both ? 2 * bytes : bytes));
    benchmark.device_bytes = 2 * buffer_bytes(info);
    auto state = std::make_shared<PeerTimer>();
    benchmark.take = [pairs, state, record, bytes,
                      id = peer.info.id()](int count) -> Result<std::vector<double>> {
      const auto pair = pairs->with(id);
      if (!pair) return pair.failure();
      if (!std::exchange(state->warm, true)) {
        HostTimer warm_up;
        auto warm = take_copies(**pair, record, bytes, warm_up, 1);
        if (!warm) {
          pairs->close(id);
          return warm;
        }
      }
      auto taken = take_copies(**pair, record, bytes, state->timer, count);
      if (!taken) pairs->close(id);
      return taken;
    };
    list.push_back(std::move(benchmark));
  }
  return list;
}

}  // namespace greta::tuner
