#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/device/device.hpp"
#include "runtime/device/peer.hpp"

namespace greta::tuner {

/// A device and a peer, each with a buffer to send from, one to receive into, and a stream.
class PeerPair {
 public:
  /// Opens the peer, the device that is called `peer`. `bytes` is the size of each buffer.
  static Result<std::unique_ptr<PeerPair>> open(Device& device, const std::string& peer,
                                                std::size_t bytes);

  // Record a copy of the first bytes of the buffers.
  Result<void> write(std::size_t bytes);
  Result<void> read(std::size_t bytes);
  /// Each device writes to the other.
  Result<void> both_ways(std::size_t bytes);
  /// Runs what is recorded (run_together()).
  Result<void> run();
  /// Whether work may still run that uses the buffers, so that the pair must not be destroyed.
  bool stuck() const { return stuck_; }

 private:
  struct Side {
    Device* device = nullptr;
    PeerCopies* copies = nullptr;
    std::unique_ptr<Buffer> sent{}, received{};
    std::unique_ptr<Stream> stream{};
  };
  PeerPair(Device& device, std::unique_ptr<Device> peer)
      : peer_(std::move(peer)), own_{&device}, other_{peer_.get()} {}

  std::unique_ptr<Device> peer_;
  Side own_, other_;
  bool stuck_ = false;
};

/// What became of work in several streams.
struct RanTogether {
  Result<void> result;  ///< or the first failure
  bool stuck = false;   ///< whether a stream did not finish: its work may still run
};

/// Submits what is recorded in each stream, and waits for all of them, also for the others after a
/// failure, because each one's work uses memory of all.
RanTogether run_together(std::span<Stream* const> streams, Deadline deadline);

/// The pairs of a device that are open. All benchmarks of a peer share one.
class PeerPairs {
 public:
  PeerPairs(Device& device, std::size_t bytes) : device_(device), bytes_(bytes) {}
  ~PeerPairs();
  PeerPairs(const PeerPairs&) = delete;
  PeerPairs& operator=(const PeerPairs&) = delete;

  /// Returns the pair with this peer, which is opened first if needed.
  Result<PeerPair*> with(const std::string& peer);
  /// Closes the pair with this peer, after a failure. A pair that is stuck is never destroyed.
  void close(const std::string& peer);

 private:
  Device& device_;
  std::size_t bytes_;
  std::map<std::string, std::unique_ptr<PeerPair>> open_;
};

}  // namespace greta::tuner
