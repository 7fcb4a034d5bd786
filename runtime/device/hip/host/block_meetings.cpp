#include <cstring>
#include <utility>

#include "runtime/device/hip/host/block_state.hpp"

/// Where the threads of a wave, of a block, and some of a block meet.
namespace greta::device::hip::host {

void BlockRunner::meet_wave(greta_host::Thread& thread, greta_host::Site site) {
  BlockRunner& runner = *self(thread).runner;
  const Outside outside(runner);
  auto& wave = static_cast<Wave&>(*thread.wave);
  if (wave.waiting == 0) {
    wave.site = site;
  } else {
    runner.check_same(self(thread), "its wave", wave.site, site);
  }
  wave.waiting |= std::uint64_t{1} << thread.lane;
  if (wave.waiting == wave.live) {
    runner.release_wave(wave);
  } else {
    runner.wait(self(thread), State::in_wave, site);
  }
}

void BlockRunner::meet_block(greta_host::Thread& thread, greta_host::Site site) {
  BlockRunner& runner = *self(thread).runner;
  const Outside outside(runner);
  if (runner.arrived_ == 0) {
    runner.barrier_ = site;
  } else {
    runner.check_same(self(thread), "its block", runner.barrier_, site);
  }
  if (++runner.arrived_ == runner.count_) {
    runner.release_block();
  } else {
    runner.wait(self(thread), State::at_barrier, site);
  }
}

void BlockRunner::meet_some(greta_host::Thread& thread, unsigned id, unsigned count, bool waits,
                            greta_host::Site site) {
  BlockRunner& runner = *self(thread).runner;
  if (id >= greta_host::partial_barriers) fail(thread, site, "there is no such barrier");
  if (count == 0 || count % runner.launch_->wave_size != 0) {
    fail(thread, site, "a barrier is for whole waves");
  }
  const Outside outside(runner);
  PartialBarrier& barrier = runner.partial_barriers_[id];
  if (barrier.arrived == 0) barrier.expected = count;
  if (barrier.expected != count) fail(thread, site, "threads name different numbers of threads");
  RaceDetector* const races = runner.races_.get();
  if (races != nullptr) races->arrive(id, runner.number(self(thread)));
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    for (Thread* other : std::exchange(barrier.waiting, {})) {
      if (races != nullptr) races->leave(id, runner.number(*other));
      runner.release(*other);
    }
    if (races == nullptr) return;
    if (waits) races->leave(id, runner.number(self(thread)));
    races->reset(id);
  } else if (waits) {
    barrier.waiting.push_back(&self(thread));
    runner.wait(self(thread), State::at_barrier, site);
  }
}

void BlockRunner::check_same(const Thread& thread, const char* group,
                             const greta_host::Site& theirs, const greta_host::Site& mine) {
  if (theirs.line == mine.line && theirs.what == mine.what && theirs.file == mine.file) return;
  const bool same = theirs.line == mine.line && std::strcmp(theirs.what, mine.what) == 0 &&
                    std::strcmp(theirs.file, mine.file) == 0;
  if (same) return;
  Fault fault{false,
              fmt::format("thread {} of block {} comes to {} while others of {} wait in {}",
                          text(thread.index), text(thread.block), text(mine), group, text(theirs))};
  stop(std::move(fault));
}

}  // namespace greta::device::hip::host
