#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/device/hip/host/block_state.hpp"

/// Barriers in shared memory that count threads and copied bytes: PTX's mbarrier. Copies are
/// written when their phase ends, so that a missing wait is seen, and their targets have bytes 0xFF
/// until then.
namespace greta::device::hip::host {

BlockRunner::CountedBarrier& BlockRunner::counted(greta_host::Thread& thread, const void* barrier,
                                                  greta_host::Site site) {
  const auto found = counted_barriers_.find(barrier);
  if (found == counted_barriers_.end()) fail(thread, site, "there is no open barrier");
  if (self(thread).runner != this && !found->second.shown) {
    fail(thread, site, "the other block has not shown the barrier");
  }
  return found->second;
}

void BlockRunner::end_phase(greta_host::Thread& thread, CountedBarrier& barrier,
                            greta_host::Site site) {
  if (barrier.unseen > 0) {
    fail(thread, site, "the phase ends while a thread may not have seen the end of the one before");
  }
  for (const StagedChunk& copy : barrier.copies) {
    for (unsigned char* const to : {copy.to, copy.shown}) {
      if (to != nullptr) std::memcpy(to, copy.data.data(), copy.data.size());
    }
    if (!races_ || copy.thread == nullptr) continue;
    const unsigned copier = number(*copy.thread);
    races_->finish(copier, copy.to, static_cast<unsigned>(copy.data.size()));
    races_->arrive_counted(barrier.number, copier);
  }
  for (const auto& [copier, copy] : std::exchange(barrier.thread_copies, {})) {
    copier->runner->finish(*copier, copy);
    if (races_) races_->arrive_counted(barrier.number, number(*copier));
  }
  if (races_) races_->end_phase(barrier.number);
  barrier.copies.clear();
  barrier.expected_bytes = 0;
  barrier.pending = barrier.arrivals;
  barrier.parity ^= 1U;
  barrier.unseen = barrier.waiting.size();
  for (Thread* const other : std::exchange(barrier.waiting, {})) {
    if (races_) races_->leave(barrier.number, number(*other));
    release(*other);
  }
}

void BlockRunner::meet_counted(greta_host::Thread& thread, const void* barrier,
                               greta_host::CountedStep step, unsigned value,
                               greta_host::Site site) {
  using greta_host::CountedStep;
  Thread& known = self(thread);
  BlockRunner& runner = *known.runner;
  const Outside outside(runner);
  if (step == CountedStep::open) {
    if (value == 0) fail(thread, site, "a barrier needs arrivals");
    const auto [found, is_new] = runner.counted_barriers_.try_emplace(barrier);
    if (!is_new) fail(thread, site, "the barrier is open already");
    CountedBarrier& opened = found->second;
    opened.arrivals = opened.pending = value;
    if (runner.races_) opened.number = runner.races_->add_barrier();
    return;
  }
  CountedBarrier& at = runner.counted(thread, barrier, site);
  if (step == CountedStep::wait) {
    if (at.parity == value) {
      at.waiting.push_back(&known);
      runner.wait(known, State::at_barrier, site);
      --at.unseen;
    } else if (runner.races_) {
      runner.races_->leave(at.number, runner.number(known));
    }
    return;
  }
  if (step == CountedStep::arrive_copied) {
    for (const Copy& copy : std::exchange(known.copies, {})) {
      at.thread_copies.emplace_back(&known, copy);
    }
  }
  runner.arrive(thread, at, step == CountedStep::expect ? value : 0, site);
}

void BlockRunner::arrive(greta_host::Thread& thread, CountedBarrier& at, unsigned bytes,
                         greta_host::Site site) {
  if (at.pending == 0) fail(thread, site, "more threads arrive than the barrier counts");
  if (races_ && self(thread).runner == this) {
    races_->arrive_counted(at.number, number(self(thread)));
  }
  at.expected_bytes += bytes;
  --at.pending;
  if (at.pending > 0) return;
  const std::uint64_t copied = at.copies.size() * std::uint64_t{16};
  if (copied > at.expected_bytes) fail(thread, site, "more bytes are copied than it expects");
  if (copied == at.expected_bytes) end_phase(thread, at, site);
}

void BlockRunner::stage_counted(greta_host::Thread& thread, unsigned rank, const void* barrier,
                                void* to, const unsigned char* from, greta_host::Site site) {
  Thread& known = self(thread);
  const Outside outside(*known.runner);
  BlockRunner& target = block_of(thread, rank, site);
  CountedBarrier& at = target.counted(thread, target.place_of(thread, barrier), site);
  const bool own = &target == known.runner;
  if (target.races_ && own) {
    const void* const code = __builtin_return_address(0);
    target.check(target.races_->stage(target.number(known), to, 16, code));
  }
  StagedChunk chunk{own ? &known : nullptr, target.place_of(thread, to), nullptr, {}};
  std::copy_n(from, chunk.data.size(), chunk.data.begin());
  target.stage(thread, at, chunk, site);
}

void BlockRunner::stage(greta_host::Thread& thread, CountedBarrier& at, const StagedChunk& chunk,
                        greta_host::Site site) {
  for (unsigned char* const to : {chunk.to, chunk.shown}) {
    if (to != nullptr) std::memset(to, 0xFF, chunk.data.size());
  }
  at.copies.push_back(chunk);
  if (at.pending == 0 && at.copies.size() * chunk.data.size() == at.expected_bytes)
    end_phase(thread, at, site);
}

}  // namespace greta::device::hip::host
