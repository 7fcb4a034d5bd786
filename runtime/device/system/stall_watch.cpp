#include "runtime/device/system/stall_watch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace greta::device {
namespace {

constexpr std::int64_t none = 0;  // no scope
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr auto look_every = std::chrono::milliseconds(50);

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// The time at which the innermost scope of a thread ends. Scopes need no lock: each costs two
/// readings of the clock, and a load and two stores of its thread's own slot.
struct Slot {
  Slot();
  ~Slot();
  std::atomic<std::int64_t> end{none};
};

/// The state of all threads. It is never destroyed, since threads may outlive it.
struct Threads {
  std::mutex mutex;
  std::vector<Slot*> slots;
  StallOptions options;
};

Threads& threads() {
  static auto* const all = new Threads;
  return *all;
}

std::atomic<bool> watching{false};
thread_local Slot slot;

Slot::Slot() {
  const std::lock_guard lock(threads().mutex);
  threads().slots.push_back(this);
}

Slot::~Slot() {
  const std::lock_guard lock(threads().mutex);
  std::erase(threads().slots, this);
}

bool stalled() {
  const std::lock_guard lock(threads().mutex);
  return std::any_of(threads().slots.begin(), threads().slots.end(), [](const Slot* one) {
    const std::int64_t end = one->end.load(std::memory_order_relaxed);
    return end != none && end < now();
  });
}

void watch() {
  while (!stalled()) std::this_thread::sleep_for(look_every);
  threads().options.end();
}

}  // namespace

void StallWatch::begin(double seconds) {
  const std::int64_t start = now(), outer = slot.end.load(std::memory_order_relaxed);
  left_ = outer == none || outer == never ? outer : std::max<std::int64_t>(outer - start, 1);
  constexpr double most_s = 1e9;
  slot.end.store(seconds < most_s ? start + static_cast<std::int64_t>(seconds * 1e9) : never,
                 std::memory_order_relaxed);
  counts_ = true;
}

StallWatch::StallWatch() {
  if (!watching.load(std::memory_order_acquire)) return;
  if (slot.end.load(std::memory_order_relaxed) == none) begin(threads().options.patience_s);
}

StallWatch::StallWatch(double seconds) {
  if (watching.load(std::memory_order_acquire)) begin(seconds + threads().options.margin_s);
}

StallWatch::~StallWatch() {
  if (!counts_) return;
  slot.end.store(left_ == none || left_ == never ? left_ : now() + left_,
                 std::memory_order_relaxed);
}

void watch_for_stalls(StallOptions options) {
  threads().options = std::move(options);
  watching.store(true, std::memory_order_release);
  std::thread(watch).detach();
}

}  // namespace greta::device
