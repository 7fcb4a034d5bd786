#include "tuner/bench/peer_benchmarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/device/backend.hpp"
#include "runtime/device/peer.hpp"
#include "tuner/bench/device_work.hpp"
#include "tuner/bench/host_timer.hpp"
#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t latency_bytes = 4;

/// Returns the other usable devices of a device's API.
std::vector<DeviceInfo> peers_of(const DeviceInfo& info) {
  std::vector<DeviceInfo> peers;
  for (Backend* const backend : backends()) {
    if (backend->api() != info.backend) continue;
    for (const ProbedDevice& probed : backend->probe().devices) {
      if (probed.usable && probed.info.index != info.index) peers.push_back(probed.info);
    }
  }
  return peers;
}

/// A device and a peer, each with a buffer to send from, one to receive into, and a stream.
class PeerPair {
 public:
  static Result<std::unique_ptr<PeerPair>> open(Device& device, const std::string& peer,
                                                std::size_t bytes) {
    auto opened = open_device(peer, {});
    if (!opened) return opened.failure();
    std::unique_ptr<PeerPair> pair(new PeerPair(device, *std::move(opened), bytes));
    for (auto [from, to] : {std::pair{&pair->own_, &pair->other_}, {&pair->other_, &pair->own_}}) {
      auto copies = peer_copies(*from->device);
      if (!copies) return copies.failure();
      from->copies = *copies;
      if (auto reached = from->copies->reach(*to->device); !reached) return reached.failure();
      auto sent = from->device->allocate(bytes), received = from->device->allocate(bytes);
      auto stream = from->device->create_stream();
      if (!sent) return sent.failure();
      if (!received) return received.failure();
      if (!stream) return stream.failure();
      from->sent = *std::move(sent);
      from->received = *std::move(received);
      from->stream = *std::move(stream);
    }
    return pair;
  }

  Result<void> write() {
    return own_.copies->copy_between(*own_.stream, *other_.received, 0, *own_.sent, 0, bytes_);
  }
  Result<void> read() {
    return own_.copies->copy_between(*own_.stream, *own_.received, 0, *other_.sent, 0, bytes_);
  }
  /// Each device writes to the other.
  Result<void> both_ways() {
    if (auto r = write(); !r) return r;
    return other_.copies->copy_between(*other_.stream, *own_.received, 0, *other_.sent, 0, bytes_);
  }
  /// Submits what is recorded, and waits for it.
  Result<void> run() {
    for (Side* side : {&own_, &other_}) {
      if (auto r = side->stream->submit(); !r) return r;
    }
    for (Side* side : {&own_, &other_}) {
      if (auto r = side->stream->synchronize(deadline_of(machine_patience_s)); !r) return r;
    }
    return {};
  }

 private:
  struct Side {
    Device* device = nullptr;
    PeerCopies* copies = nullptr;
    std::unique_ptr<Buffer> sent{}, received{};
    std::unique_ptr<Stream> stream{};
  };
  PeerPair(Device& device, std::unique_ptr<Device> peer, std::size_t bytes)
      : bytes_(bytes), peer_(std::move(peer)), own_{&device}, other_{peer_.get()} {}

  std::size_t bytes_;
  std::unique_ptr<Device> peer_;
  Side own_, other_;
};

struct PeerState {
  std::unique_ptr<PeerPair> pair;
  HostTimer timer;
};

}  // namespace

std::string why_no_peers(Device& device) {
  if (const auto copies = peer_copies(device); !copies) return copies.failure().message;
  if (peers_of(device.info()).empty()) return "there is one card";
  return {};
}

std::vector<Benchmark> peer_benchmarks(Device& device, const std::string& name) {
  std::vector<Benchmark> list;
  if (!why_no_peers(device).empty()) return list;
  const DeviceInfo& info = device.info();
  const bool latency = name == "peer_latency", both = name == "peer_both_ways";
  const std::size_t many = info.is_cpu() ? std::size_t{8} << 20 : std::size_t{256} << 20;
  const std::size_t bytes = latency ? latency_bytes : many;
  Result<void> (PeerPair::*const record)() = both                  ? &PeerPair::both_ways
                                             : name == "peer_read" ? &PeerPair::read
                                                                   : &PeerPair::write;
  for (const DeviceInfo& peer : peers_of(info)) {
    auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, name,
                                       {{"bytes", bytes}, {"peer", peer.index}},
                                       static_cast<double>(both ? 2 * bytes : bytes));
    auto state = std::make_shared<PeerState>();
    benchmark.take = [&device, state, record, bytes,
                      id = peer.id()](int count) -> Result<std::vector<double>> {
      const auto once = [&]() -> Result<void> {
        auto recorded = ((*state->pair).*record)();
        return recorded ? state->pair->run() : recorded;
      };
      if (!state->pair) {
        auto opened = PeerPair::open(device, id, bytes);
        if (!opened) return opened.failure();
        state->pair = *std::move(opened);
        if (auto warm = once(); !warm) return warm.failure();
      }
      return state->timer.take(count, [&](int calls) -> Result<void> {
        for (int i = 0; i < calls; ++i) {
          if (auto done = once(); !done) return done;
        }
        return {};
      });
    };
    list.push_back(std::move(benchmark));
  }
  return list;
}

}  // namespace greta::tuner
