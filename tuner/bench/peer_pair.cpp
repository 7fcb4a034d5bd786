#include "tuner/bench/peer_pair.hpp"

#include <array>
#include <utility>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/bench/device_work.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

/// Destroys a pair, or keeps it where leak checkers find it.
void end(std::unique_ptr<PeerPair> pair) {
  static auto* const stuck = new std::vector<std::unique_ptr<PeerPair>>;
  if (pair->stuck()) stuck->push_back(std::move(pair));
}

}  // namespace

Result<std::unique_ptr<PeerPair>> PeerPair::open(Device& device, const std::string& peer,
                                                 std::size_t bytes) {
  auto opened = open_device(peer, {});
  if (!opened) return opened.failure();
  std::unique_ptr<PeerPair> pair(new PeerPair(device, *std::move(opened)));
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

Result<void> PeerPair::write(std::size_t bytes) {
  return own_.copies->copy_between(*own_.stream, *other_.received, 0, *own_.sent, 0, bytes);
}

Result<void> PeerPair::read(std::size_t bytes) {
  return own_.copies->copy_between(*own_.stream, *own_.received, 0, *other_.sent, 0, bytes);
}

Result<void> PeerPair::both_ways(std::size_t bytes) {
  if (auto r = write(bytes); !r) return r;
  return other_.copies->copy_between(*other_.stream, *own_.received, 0, *other_.sent, 0, bytes);
}

Result<void> PeerPair::run() {
  const std::array streams{own_.stream.get(), other_.stream.get()};
  RanTogether ran = run_together(streams, deadline_of(machine_patience_s));
  stuck_ = stuck_ || ran.stuck;
  return ran.result;
}

RanTogether run_together(std::span<Stream* const> streams, Deadline deadline) {
  RanTogether ran;
  const auto note = [&](const Result<void>& done) {
    if (!done && ran.result) ran.result = done;
    return static_cast<bool>(done);
  };
  // Work that can't be submitted is dropped, as waiting would submit it again.
  for (Stream* const stream : streams) {
    if (!note(stream->submit())) stream->discard();
  }
  for (Stream* const stream : streams) {
    if (!note(stream->synchronize(deadline))) ran.stuck = true;
  }
  return ran;
}

PeerPairs::~PeerPairs() {
  for (auto& [peer, pair] : open_) end(std::move(pair));
}

Result<PeerPair*> PeerPairs::with(const std::string& peer) {
  if (const auto found = open_.find(peer); found != open_.end()) return found->second.get();
  auto opened = PeerPair::open(device_, peer, bytes_);
  if (!opened) return opened.failure();
  return open_.emplace(peer, *std::move(opened)).first->second.get();
}

void PeerPairs::close(const std::string& peer) {
  if (auto closed = open_.extract(peer)) end(std::move(closed.mapped()));
}

}  // namespace greta::tuner
