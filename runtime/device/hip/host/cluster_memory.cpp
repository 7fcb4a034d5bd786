#include <algorithm>
#include <utility>

#include "runtime/device/hip/host/block_state.hpp"

/// What a block of a cluster does to others. They read what it has written and shown by an arrival
/// at the cluster's barrier that is not relaxed; nothing else orders it for them. What they send
/// comes to the place where it lies before a store that was not shown: that store takes its place.
namespace greta::device::hip::host {
namespace {

/// Does the work of memcpy() without sanitizer checks, because the gaps between variables are
/// poisoned.
__attribute__((no_sanitize("address"))) void copy_unchecked(const unsigned char* from,
                                                            const unsigned char* end,
                                                            unsigned char* to) {
  for (; from != end && reinterpret_cast<std::uintptr_t>(from) % 8 != 0; ++from) *to++ = *from;
  for (; end - from >= 8; from += 8, to += 8) {
    *reinterpret_cast<volatile std::uint64_t*>(to) = *reinterpret_cast<const std::uint64_t*>(from);
  }
  for (; from != end; ++from) *const_cast<volatile unsigned char*>(to++) = *from;
}

}  // namespace

BlockRunner& BlockRunner::block_of(greta_host::Thread& thread, unsigned rank,
                                   greta_host::Site site) {
  const auto& blocks = self(thread).runner->cluster_->blocks;
  if (rank >= blocks.size()) fail(thread, site, "the cluster has no such block");
  if (blocks[rank]->ended()) fail(thread, site, "the other block has ended");
  return *blocks[rank];
}

unsigned char* BlockRunner::place_of(const greta_host::Thread& thread, const void* own) const {
  return entry_->shared + (static_cast<const unsigned char*>(own) - thread.entry->shared);
}

unsigned char* BlockRunner::shown_at(const unsigned char* place) {
  return shown_.empty() ? nullptr : shown_.data() + shown_start_ + (place - entry_->shared);
}

void BlockRunner::hide_memory() {
  if (cluster_->blocks.size() == 1) return shown_.clear();
  constexpr std::size_t alignment = 1024;  // the greatest that instructions ask for
  shown_.assign(static_cast<std::size_t>(entry_->shared_end - entry_->shared) + alignment, 0xFF);
  const auto of = [](const unsigned char* at) { return reinterpret_cast<std::uintptr_t>(at); };
  shown_start_ = (of(entry_->shared) - of(shown_.data())) % alignment;
}

void BlockRunner::show_memory() {
  show_own_barriers();
  if (shown_.empty()) return;
  each_part([this](const unsigned char* from, const unsigned char* to) {
    copy_unchecked(from, to, shown_at(from));
  });
}

void BlockRunner::show_barriers(greta_host::Thread& thread) {
  self(thread).runner->show_own_barriers();
}

void BlockRunner::show_own_barriers() {
  for (auto& [place, barrier] : counted_barriers_) barrier.shown = true;
}

void BlockRunner::count_arrival() {
  if (--missing_ > 0) return;
  if (std::exchange(released_, false)) show_memory();
  for (const BlockRunner* block : cluster_->blocks) {
    if (block->missing_ > 0) return;
  }
  ++cluster_->phase;
  for (BlockRunner* const block : cluster_->blocks) {
    block->missing_ = block->count_ - block->ended_;
    if (block->races_) block->races_->end_phase(block->cluster_barrier_);
    for (const Thread* waiting : std::exchange(block->at_cluster_barrier_, {})) {
      block->release(*waiting);
    }
  }
}

void BlockRunner::meet_cluster(greta_host::Thread& thread, greta_host::ClusterStep step,
                               greta_host::Site site) {
  using greta_host::ClusterStep;
  Thread& known = self(thread);
  BlockRunner& runner = *known.runner;
  const Outside outside(runner);
  RaceDetector* const races = runner.races_.get();
  if (step == ClusterStep::wait) {
    if (!known.in_phase) fail(thread, site, "the thread has not arrived");
    known.in_phase = false;
    if (known.cluster_phase == runner.cluster_->phase) {
      runner.at_cluster_barrier_.push_back(&known);
      runner.wait(known, State::at_barrier, site);
    }
    if (races != nullptr) races->leave(runner.cluster_barrier_, runner.number(known));
    return;
  }
  if (known.in_phase) fail(thread, site, "the thread arrives again and has not waited");
  known.in_phase = true;
  known.cluster_phase = runner.cluster_->phase;
  if (step == ClusterStep::arrive) {
    runner.released_ = true;
    if (races != nullptr) races->arrive_counted(runner.cluster_barrier_, runner.number(known));
  }
  runner.count_arrival();
}

const void* BlockRunner::place_in_block(greta_host::Thread& thread, unsigned rank, const void* own,
                                        greta_host::Site site) {
  BlockRunner& runner = *self(thread).runner;
  const Outside outside(runner);
  BlockRunner& block = block_of(thread, rank, site);
  return &block == &runner ? own : block.shown_at(block.place_of(thread, own));
}

void BlockRunner::send(greta_host::Thread& thread, unsigned rank, const void* barrier, void* to,
                       const unsigned char* from, greta_host::Site site) {
  const Outside outside(*self(thread).runner);
  BlockRunner& target = block_of(thread, rank, site);
  CountedBarrier& at = target.counted(thread, target.place_of(thread, barrier), site);
  unsigned char* const place = target.place_of(thread, to);
  StagedChunk chunk{nullptr, place, target.shown_at(place), {}};
  std::copy_n(from, chunk.data.size(), chunk.data.begin());
  const bool written =
      chunk.shown != nullptr && !std::equal(place, place + chunk.data.size(), chunk.shown);
  if (written) chunk.to = nullptr;
  target.stage(thread, at, chunk, site);
}

void BlockRunner::arrive_in_block(greta_host::Thread& thread, unsigned rank, const void* barrier,
                                  greta_host::Site site) {
  const Outside outside(*self(thread).runner);
  BlockRunner& target = block_of(thread, rank, site);
  target.arrive(thread, target.counted(thread, target.place_of(thread, barrier), site), 0, site);
}

std::optional<Fault> BlockRunner::close() {
  hide_memory();
  for (const auto& [place, barrier] : counted_barriers_) {
    const bool others = std::any_of(barrier.copies.begin(), barrier.copies.end(),
                                    [](const StagedChunk& copy) { return copy.thread == nullptr; });
    if (!others) continue;
    return Fault{false,
                 fmt::format("block {} has ended, and what others of its cluster copy or send "
                             "to its shared memory is still under way",
                             text(threads_[0].block))};
  }
  return std::nullopt;
}

}  // namespace greta::device::hip::host
