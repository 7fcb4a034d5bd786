#include "runtime/device/hip/host/block_runner.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/device/hip/host/block_state.hpp"
#include "runtime/device/hip/host/sanitizer.hpp"

namespace greta::device::hip::host {

namespace {

/// Returns the first lane in `mask` after `lane`, wrapping around to lane 0.
unsigned following(std::uint64_t mask, unsigned lane) {
  const std::uint64_t later = mask & ~((std::uint64_t{2} << lane) - 1);
  return static_cast<unsigned>(std::countr_zero(later != 0 ? later : mask));
}

/// Returns the last wave in `mask` before `wave`, wrapping around to the last of all.
unsigned preceding(std::uint64_t mask, unsigned wave) {
  const std::uint64_t earlier = mask & ((std::uint64_t{1} << wave) - 1);
  return 63 - static_cast<unsigned>(std::countl_zero(earlier != 0 ? earlier : mask));
}

/// Returns those of a block's waves that are late: of every other block one, else about half.
std::uint64_t draw_late_waves(std::uint64_t block, std::size_t waves) {
  const std::uint64_t mixed = (block + 1) * 0x9e3779b97f4a7c15 >> 32;  // by the golden ratio
  return block % 2 == 0 ? std::uint64_t{1} << mixed % waves : mixed;
}

/// Does the work of memset() without sanitizer checks, because the gaps between variables are
/// poisoned.
__attribute__((no_sanitize("address"))) void fill_unchecked(unsigned char* from,
                                                            const unsigned char* to) {
  while (from != to && reinterpret_cast<std::uintptr_t>(from) % 8 != 0) *from++ = 0xFF;
  for (; to - from >= 8; from += 8) {
    *reinterpret_cast<volatile std::uint64_t*>(from) = ~std::uint64_t{0};
  }
  while (from != to) *const_cast<volatile unsigned char*>(from++) = 0xFF;
}

}  // namespace

const greta_host::Calls BlockRunner::calls_{&meet_wave,      &meet_block,     &meet_some,
                                            &stage_copy,     &commit_copies,  &finish_copies,
                                            &meet_counted,   &stage_counted,  &await_launches,
                                            &fail,           &access,         &fence,
                                            &call,           &let_others_run, &meet_cluster,
                                            &place_in_block, &send,           &arrive_in_block,
                                            &show_barriers};

BlockRunner::BlockRunner() : main_(Fiber::of_this_thread()) {}
BlockRunner::~BlockRunner() = default;

BlockRunner::Thread& BlockRunner::self(greta_host::Thread& thread) {
  return static_cast<Thread&>(thread);
}

void BlockRunner::set_launch(const greta_host::Entry& entry, const Launch& launch,
                             const std::function<void()>* earlier, Cluster& cluster,
                             unsigned rank) {
  entry_ = &entry;
  launch_ = &launch;
  earlier_ = earlier;
  cluster_ = &cluster;
  rank_ = rank;
  count_ = launch.block.x * launch.block.y * launch.block.z;
  if (threads_.size() < count_) threads_.resize(count_);
  const unsigned waves = (count_ + launch.wave_size - 1) / launch.wave_size;
  waves_.resize(waves);
  for (unsigned i = 0; i < waves; ++i) {
    waves_[i].first = i * launch.wave_size;
    waves_[i].memory.resize(std::size_t{2} * launch.wave_size);
    waves_[i].slots[0] = waves_[i].memory.data();
    waves_[i].slots[1] = waves_[i].memory.data() + launch.wave_size;
  }
  if (entry.finds_races) {
    if (!races_) races_ = std::make_unique<RaceDetector>();
    races_->set_launch(entry, count_, launch.wave_size);
  } else {
    races_.reset();
  }
  if (!address_sanitizer().loaded()) return;
  address_sanitizer().unpoison(entry.dynamic, launch.dynamic_bytes);
  address_sanitizer().poison(entry.dynamic + launch.dynamic_bytes,
                             entry.dynamic_bytes - launch.dynamic_bytes);
}

// Uninitialised shared memory reads as NaN, or -1.
void BlockRunner::clear_shared_memory() {
  each_part([](unsigned char* from, const unsigned char* to) { fill_unchecked(from, to); });
}

void BlockRunner::reset(greta_host::Index block) {
  const greta_host::Index size = launch_->block;
  for (unsigned i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    thread.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    thread.block = block;
    thread.rank = rank_;
    thread.lane = i % launch_->wave_size;
    thread.exchanges = 0;
    thread.wave = &waves_[i / launch_->wave_size];
    thread.launch = launch_;
    thread.entry = entry_;
    thread.calls = &calls_;
    thread.runner = this;
    thread.fiber = nullptr;
    thread.state = State::unstarted;
    thread.in_phase = false;
    thread.cluster_phase = 0;
    thread.groups = 0;
    thread.copies.clear();
  }
  for (Wave& wave : waves_) {
    const unsigned lanes = std::min(launch_->wave_size, count_ - wave.first);
    wave.live = wave.ready = ~std::uint64_t{0} >> (64 - lanes);
    wave.waiting = wave.met = 0;
  }
  ready_waves_ = ~std::uint64_t{0} >> (64 - waves_.size());
  backward_ = (block.x + block.y + block.z + waves_.size()) % 2 != 0;
  late_waves_ = draw_late_waves(std::uint64_t{block.x} + block.y + block.z, waves_.size());
  arrived_ = ended_ = 0;
  partial_barriers_.assign(greta_host::partial_barriers, {});
  counted_barriers_.clear();
  missing_ = count_;
  released_ = false;
  at_cluster_barrier_.clear();
  if (!races_) return;
  races_->start_block();
  cluster_barrier_ = races_->add_barrier();
}

void BlockRunner::start(greta_host::Index block) {
  reset(block);
  clear_shared_memory();
  hide_memory();
  fault_.reset();
  signal_ = 0;
  current_ = &threads_[backward_ ? 0 : waves_.back().first];  // the others run first
}

std::optional<Fault> BlockRunner::resume() {
  const Wave& wave = waves_[next_wave(wave_number(*current_))];
  current_ = &threads_[wave.first + static_cast<unsigned>(std::countr_zero(wave.ready))];
  *entry_->current = current_;
  if (current_->fiber == nullptr) current_->fiber = &take_fiber();
  Fiber::change(main_, *current_->fiber);
  in_kernel_ = 0;
  if (signal_ != 0) fault_ = interruption();
  return fault_;
}

void BlockRunner::abandon() {
  idle_.clear();
  for (Fiber& fiber : fibers_) {  // which stopped at arbitrary points
    fiber.prepare(&fiber_body, this, static_cast<unsigned>(idle_.size()));
    idle_.push_back(&fiber);
  }
}

std::size_t BlockRunner::release_stacks(std::size_t most) {
  while (fibers_.size() > most) {
    std::erase(idle_, &fibers_.back());
    fibers_.pop_back();
  }
  return fibers_.size();
}

Fiber& BlockRunner::take_fiber() {
  if (idle_.empty()) {
    const bool sanitized = address_sanitizer().loaded();
    fibers_.emplace_back(sanitized ? sanitized_stack_bytes : stack_bytes);
    fibers_.back().prepare(&fiber_body, this, static_cast<unsigned>(fibers_.size()));
    idle_.push_back(&fibers_.back());
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

void BlockRunner::fiber_body(void* runner) {
  Fiber::arrived();
  static_cast<BlockRunner*>(runner)->run_threads();
}

// A fiber runs unstarted threads in an endless loop, in this block and in later ones.
void BlockRunner::run_threads() {
  for (;;) {
    Thread& thread = *current_;
    Fiber& fiber = *thread.fiber;
    thread.state = State::running;
    in_kernel_ = 1;
    entry_->run(launch_->arguments);
    in_kernel_ = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    end_thread(thread);
    Thread* const other = next(thread);
    if (other == nullptr) {
      idle_.push_back(&fiber);
      leave(fiber);
    } else if (other->state == State::unstarted) {
      other->fiber = &fiber;
      current_ = other;
      *entry_->current = other;
    } else {
      idle_.push_back(&fiber);
      current_ = other;
      *entry_->current = other;
      Fiber::change(fiber, *other->fiber);
    }
  }
}

void BlockRunner::end_thread(Thread& thread) {
  thread.state = State::ended;
  thread.fiber = nullptr;
  ++ended_;
  auto& wave = static_cast<Wave&>(*thread.wave);
  const std::uint64_t bit = std::uint64_t{1} << thread.lane;
  wave.live &= ~bit;
  wave.ready &= ~bit;
  if (wave.waiting != 0 && wave.waiting == wave.live) release_wave(wave);
  if (thread.cluster_phase != cluster_->phase) count_arrival();
}

void BlockRunner::release_wave(Wave& wave) {
  wave.met = wave.live;
  wave.waiting = 0;
  wave.ready = wave.live;
  ready_waves_ |= std::uint64_t{1} << (&wave - waves_.data());
  if (races_) races_->met_wave(static_cast<unsigned>(&wave - waves_.data()));
}

void BlockRunner::release_block() {
  arrived_ = 0;
  if (races_) races_->met_block();
  for (Wave& wave : waves_) wave.ready = wave.live;
  ready_waves_ = ~std::uint64_t{0} >> (64 - waves_.size());
}

unsigned BlockRunner::wave_number(const Thread& thread) const {
  return static_cast<unsigned>(static_cast<const Wave*>(thread.wave) - waves_.data());
}

unsigned BlockRunner::wave_after(std::uint64_t waves, unsigned number) const {
  return backward_ ? preceding(waves, number) : following(waves, number);
}

unsigned BlockRunner::next_wave(unsigned number) const {
  const std::uint64_t early = ready_waves_ & ~late_waves_;
  return wave_after(early != 0 ? early : ready_waves_, number);
}

// Waves run as far as they can, one after the other.
BlockRunner::Thread* BlockRunner::next(const Thread& after) {
  const auto* wave = static_cast<const Wave*>(after.wave);
  const unsigned number = wave_number(after);
  if (wave->ready != 0) return &threads_[wave->first + following(wave->ready, after.lane)];
  ready_waves_ &= ~(std::uint64_t{1} << number);
  if (ready_waves_ == 0) return nullptr;
  wave = &waves_[next_wave(number)];
  return &threads_[wave->first + static_cast<unsigned>(std::countr_zero(wave->ready))];
}

void BlockRunner::switch_to(Thread& from, Thread& to) {
  if (to.fiber == nullptr) to.fiber = &take_fiber();
  current_ = &to;
  *entry_->current = &to;
  Fiber::change(*from.fiber, *to.fiber);
}

void BlockRunner::leave(Fiber& from) {
  Fiber::change(from, main_);
}

void BlockRunner::wait(Thread& thread, State state, greta_host::Site site) {
  thread.state = state;
  thread.site = site;
  static_cast<Wave&>(*thread.wave).ready &= ~(std::uint64_t{1} << thread.lane);
  Thread* const other = next(thread);
  if (other == nullptr) {
    leave(*thread.fiber);
  } else {
    switch_to(thread, *other);
  }
  thread.state = State::running;
}

void BlockRunner::let_others_run(greta_host::Thread& thread) {
  BlockRunner& runner = *self(thread).runner;
  const Outside outside(runner);
  if (runner.cluster_->blocks.size() > 1) {
    runner.leave(*self(thread).fiber);  // also to other blocks
    self(thread).state = State::running;
    return;
  }
  const unsigned number = runner.wave_number(self(thread));
  const std::uint64_t others = runner.ready_waves_ & ~(std::uint64_t{1} << number);
  if (others == 0) return;
  const Wave& wave = runner.waves_[runner.wave_after(others, number)];
  runner.switch_to(
      self(thread),
      runner.threads_[wave.first + static_cast<unsigned>(std::countr_zero(wave.ready))]);
  self(thread).state = State::running;
}

void BlockRunner::release(const Thread& thread) {
  auto& wave = static_cast<Wave&>(*thread.wave);
  wave.ready |= std::uint64_t{1} << thread.lane;
  ready_waves_ |= std::uint64_t{1} << (&wave - waves_.data());
}

unsigned char* BlockRunner::stage_copy(greta_host::Thread& thread, void* to, unsigned bytes) {
  Thread& known = self(thread);
  BlockRunner& runner = *known.runner;
  const Outside outside(runner);
  if (runner.races_) {
    const void* const code = __builtin_return_address(0);
    runner.check(runner.races_->stage(runner.number(known), to, bytes, code));
  }
  std::memset(to, 0xFF, bytes);
  return known.copies.emplace_back(Copy{to, bytes, known.groups, {}}).data.data();
}

void BlockRunner::commit_copies(greta_host::Thread& thread) {
  ++self(thread).groups;
}

void BlockRunner::await_launches(greta_host::Thread& thread) {
  const BlockRunner& runner = *self(thread).runner;
  const Outside outside(*self(thread).runner);
  if (runner.earlier_ != nullptr && *runner.earlier_) (*runner.earlier_)();
}

void BlockRunner::finish_copies(greta_host::Thread& thread, unsigned pending) {
  Thread& known = self(thread);
  const Outside outside(*known.runner);
  const unsigned done = known.groups > pending ? known.groups - pending : 0;
  const auto end = std::find_if(known.copies.begin(), known.copies.end(),
                                [done](const Copy& copy) { return copy.group >= done; });
  for (auto copy = known.copies.begin(); copy != end; ++copy) {
    known.runner->finish(known, *copy);
  }
  known.copies.erase(known.copies.begin(), end);
}

void BlockRunner::finish(const Thread& thread, const Copy& copy) {
  std::memcpy(copy.to, copy.data.data(), copy.bytes);
  if (races_) races_->finish(number(thread), copy.to, copy.bytes);
}

void BlockRunner::stop(Fault fault) {
  fault_ = std::move(fault);
  Fiber::escape(main_);
}

void BlockRunner::fail(greta_host::Thread& thread, greta_host::Site site, const char* why) {
  BlockRunner& runner = *self(thread).runner;
  const Outside outside(runner);
  Fault fault{false, fmt::format("{}: {}, by thread {} of block {}", text(site), why,
                                 text(thread.index), text(thread.block))};
  runner.stop(std::move(fault));  // no destructors run on this stack
}

bool BlockRunner::interrupt(int signal, const void* address) {
  if (in_kernel_ == 0) return false;
  in_kernel_ = 0;
  signal_ = signal;
  signal_address_ = address;
  Fiber::escape(main_);
}

}  // namespace greta::device::hip::host
