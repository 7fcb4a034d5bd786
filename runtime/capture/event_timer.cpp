// Source of names and arguments: NVIDIA's documentation of the CUDA driver, AMD's of HIP.
#include "runtime/capture/event_timer.hpp"

#include <unistd.h>

#include <cstdlib>

#include "runtime/capture/call_table.hpp"
#include "runtime/capture/symbol.hpp"

namespace greta::capture {

const EventNames cuda_events{.file = "libcuda",
                             .create = "cuEventCreate",
                             .record = "cuEventRecord",
                             .query = "cuEventQuery",
                             .elapsed = "cuEventElapsedTime",
                             .is_capturing = "cuStreamIsCapturing",
                             .exchange_mode = "cuThreadExchangeStreamCaptureMode",
                             .context_get = "cuCtxGetCurrent",
                             .context_set = "cuCtxSetCurrent",
                             .last_error = nullptr,
                             .peek_error = nullptr};
const EventNames hip_events{.file = "libamdhip64",
                            .create = "hipEventCreateWithFlags",
                            .record = "hipEventRecord",
                            .query = "hipEventQuery",
                            .elapsed = "hipEventElapsedTime",
                            .is_capturing = "hipStreamIsCapturing",
                            .exchange_mode = "hipThreadExchangeStreamCaptureMode",
                            .context_get = nullptr,
                            .context_set = nullptr,
                            .last_error = "hipGetLastError",
                            .peek_error = "hipPeekAtLastError"};

namespace {

constexpr int not_ready = 600, no_context = 201;  // the same numbers in both
constexpr unsigned slots = 256, tries = 16;

/// The functions of a runtime.
struct Events {
  int (*create)(void** event, unsigned flags);
  int (*record)(void* event, void* stream);
  int (*query)(void* event);
  int (*elapsed)(float* ms, void* begin, void* end);
  int (*is_capturing)(void* stream, int* result);
  int (*exchange_mode)(int* mode);
  int (*context_get)(void** context);
  int (*context_set)(void* context);
  int (*last_error)();
  int (*peek_error)();
  std::atomic<int> state;  ///< absent, being_found, found
};
enum { absent, being_found, found };

enum : int { is_free, is_taken, is_pending };
struct Slot {
  std::atomic<int> state;
  Entry* entry;
  const Events* events;
  void *context, *begin, *end;  ///< events of this context; nullptr: none yet
};

Events runtimes[2];
Slot slot[slots];
std::atomic<unsigned> next_slot;
std::atomic<bool> is_untimed;
std::atomic<pid_t> owner;  // the process whose events they are; 0: none yet

template <typename Function>
bool get(const EventNames& names, const char* name, Function& function) {
  if (name == nullptr) return true;
  function = reinterpret_cast<Function>(function_in_loaded(names.file, name));
  return function != nullptr;
}

/// Returns the functions of a runtime that is loaded; nullptr if there is none, or if another
/// thread is looking for it.
const Events* find_events(const EventNames* names) {
  if (names == nullptr) return nullptr;
  Events& events = runtimes[names == &hip_events ? 1 : 0];
  if (events.state.load(std::memory_order_acquire) == found) return &events;
  int before = absent;
  if (!events.state.compare_exchange_strong(before, being_found)) return nullptr;
  const bool has_all =
      get(*names, names->create, events.create) && get(*names, names->record, events.record) &&
      get(*names, names->query, events.query) && get(*names, names->elapsed, events.elapsed) &&
      get(*names, names->is_capturing, events.is_capturing) &&
      get(*names, names->exchange_mode, events.exchange_mode) &&
      get(*names, names->context_get, events.context_get) &&
      get(*names, names->context_set, events.context_set) &&
      get(*names, names->last_error, events.last_error) &&
      get(*names, names->peek_error, events.peek_error);
  events.state.store(has_all ? found : absent, std::memory_order_release);
  return has_all ? &events : nullptr;
}

/// While it lives, calls of this thread don't disturb streams that others record into graphs.
class Relaxed {
 public:
  explicit Relaxed(const Events& events) : events_(events) { events_.exchange_mode(&mode_); }
  ~Relaxed() { events_.exchange_mode(&mode_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  const Events& events_;
  int mode_ = 2;
};

bool is_chosen(const Entry& entry) {
  const std::uint64_t number = entry.count.load(std::memory_order_relaxed) + 1;
  if (number >= 2048) return number % 2048 == 0;
  return (number & (number - 1)) == 0 && (__builtin_ctzll(number) & 1) != 0;
}

/// Takes a slot whose events, if it has any, are of this context. Returns its number, from 1 on.
unsigned take_slot(const Events& events, void* context) {
  const unsigned start = next_slot.fetch_add(1, std::memory_order_relaxed);
  for (unsigned i = 0; i < tries; ++i) {
    const unsigned at = (start + i) % slots;
    int before = is_free;
    if (!slot[at].state.compare_exchange_strong(before, is_taken)) continue;
    const bool fits =
        slot[at].begin == nullptr || (slot[at].events == &events && slot[at].context == context);
    if (fits) return at + 1;
    slot[at].state.store(is_free, std::memory_order_release);
  }
  return 0;
}

/// Forgets the events of a slot, which can be of no use: the context may have gone.
void give_up(Slot& used) {
  used.begin = used.end = nullptr;
  used.state.store(is_free, std::memory_order_release);
}

/// An error of the calls here is not one of the program's.
void clear_error(const Events& events) {
  if (events.last_error != nullptr) events.last_error();
}

bool create_events(const Events& events, Slot& used) {
  if (used.begin != nullptr) return true;
  if (events.create(&used.begin, 0) == 0 && events.create(&used.end, 0) == 0) return true;
  clear_error(events);
  return false;
}

/// Returns whether the slot is done with: its time is known, or never will be.
bool read_time(Slot& used) {
  const Events& events = *used.events;
  const Relaxed relaxed(events);
  int status = events.query(used.end);
  if (status == no_context && events.context_set != nullptr) {
    events.context_set(used.context);
    status = events.query(used.end);
  }
  float ms = 0;
  if (status == 0) status = events.elapsed(&ms, used.begin, used.end);
  if (status == 0 && ms > 0) add_time(*used.entry, 1000 * ms);
  if (status == 0) return true;
  clear_error(events);
  if (status != not_ready) used.begin = used.end = nullptr;
  return status != not_ready;
}

}  // namespace

EventTimer::EventTimer(const Library& library, Entry* entry, void* handle, void* stream) {
  if (entry == nullptr || !is_chosen(*entry) || is_untimed.load(std::memory_order_relaxed)) return;
  begin(library, entry, handle, stream);
}

void EventTimer::begin(const Library& library, Entry* entry, void* handle, void* stream) {
  const Events* const events = find_events(library.family->events);
  if (events == nullptr || (events->peek_error != nullptr && events->peek_error() != 0)) return;
  if (handle != nullptr &&
      (library.stream_get == nullptr || library.stream_get(handle, &stream) != 0)) {
    return;
  }
  const Relaxed relaxed(*events);
  int is_capturing = 0;
  void* context = nullptr;
  if (events->is_capturing(stream, &is_capturing) != 0) return clear_error(*events);
  if (is_capturing != 0) return;
  if (events->context_get != nullptr && events->context_get(&context) != 0) return;
  const unsigned number = take_slot(*events, context);
  if (number == 0) return;
  Slot& taken = slot[number - 1];
  taken.entry = entry, taken.events = events, taken.context = context;
  if (!create_events(*events, taken)) return give_up(taken);
  if (events->record(taken.begin, stream) != 0) {
    clear_error(*events);
    return give_up(taken);
  }
  slot_ = number, stream_ = stream;
}

void EventTimer::end(bool has_succeeded) {
  if (slot_ == 0) return;
  Slot& taken = slot[slot_ - 1];
  if (!has_succeeded) {  // the call's own error stays the last one
    taken.state.store(is_free, std::memory_order_release);
    return;
  }
  const Relaxed relaxed(*taken.events);
  if (taken.events->record(taken.end, stream_) != 0) {
    clear_error(*taken.events);
    return give_up(taken);
  }
  taken.state.store(is_pending, std::memory_order_release);
  // Before what the runtime does at the end, which was registered earlier.
  if (owner.exchange(getpid()) == 0) std::atexit(read_times);
}

void set_untimed() {
  is_untimed.store(true);
}

void read_times() {
  if (owner.load() != getpid()) return;  // a child of vfork has no events, but this memory
  for (Slot& each : slot) {
    int before = is_pending;
    if (!each.state.compare_exchange_strong(before, is_taken)) continue;
    each.state.store(read_time(each) ? is_free : is_pending, std::memory_order_release);
  }
}

void forget_times() {
  owner.store(0);
  for (Slot& each : slot) give_up(each);
}

}  // namespace greta::capture
