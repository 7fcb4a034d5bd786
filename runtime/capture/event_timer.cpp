// Source of names and arguments: NVIDIA's documentation of the CUDA driver, AMD's of HIP.
#include "runtime/capture/event_timer.hpp"

#include <unistd.h>

#include <cstdlib>

#include "runtime/capture/call_table.hpp"
#include "runtime/capture/symbol.hpp"

namespace greta::capture {

const EventNames cuda_events{.file = "libcuda",
                             .create = "cuEventCreate",
                             .destroy = "cuEventDestroy_v2",
                             .record = "cuEventRecord",
                             .query = "cuEventQuery",
                             .elapsed = "cuEventElapsedTime",
                             .is_capturing = "cuStreamIsCapturing",
                             .exchange_mode = "cuThreadExchangeStreamCaptureMode",
                             .context_get = "cuCtxGetCurrent",
                             .context_set = "cuCtxSetCurrent",
                             .device_get = "cuCtxGetDevice",
                             .device_state = "cuDevicePrimaryCtxGetState",
                             .last_error = nullptr,
                             .peek_error = nullptr};
const EventNames hip_events{.file = "libamdhip64",
                            .create = "hipEventCreateWithFlags",
                            .destroy = "hipEventDestroy",
                            .record = "hipEventRecord",
                            .query = "hipEventQuery",
                            .elapsed = "hipEventElapsedTime",
                            .is_capturing = "hipStreamIsCapturing",
                            .exchange_mode = "hipThreadExchangeStreamCaptureMode",
                            .context_get = nullptr,
                            .context_set = nullptr,
                            .device_get = nullptr,
                            .device_state = nullptr,
                            .last_error = "hipGetLastError",
                            .peek_error = "hipPeekAtLastError"};

namespace {

constexpr int not_ready = 600, no_context = 201;  // the same numbers in both
constexpr unsigned slots = 256, tries = 16;

/// The functions of a runtime.
struct Events {
  int (*create)(void** event, unsigned flags);
  int (*destroy)(void* event);
  int (*record)(void* event, void* stream);
  int (*query)(void* event);
  int (*elapsed)(float* ms, void* begin, void* end);
  int (*is_capturing)(void* stream, int* result);
  int (*exchange_mode)(int* mode);
  int (*context_get)(void** context);
  int (*context_set)(void* context);
  int (*device_get)(int* device);
  int (*device_state)(int device, unsigned* flags, int* is_active);
  int (*last_error)();
  int (*peek_error)();
  std::atomic<int> state;  ///< absent, being_found, found
};
enum { absent, being_found, found };

enum : int { is_free, is_taken, is_pending };
struct Slot {
  std::atomic<int> state;
  Entry* entry;  ///< nullptr: the call failed
  const Events* events;
  int device;
  void *context, *begin, *end;
};

Events runtimes[2];
Slot slot[slots];
std::atomic<unsigned> next_slot;
std::atomic<bool> is_untimed;
std::atomic<pid_t> owner;   // the process whose events they are; 0: none yet
std::atomic<int> readers;   ///< threads that read times
std::atomic<bool> is_over;  ///< the driver may be gone

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
      get(*names, names->create, events.create) && get(*names, names->destroy, events.destroy) &&
      get(*names, names->record, events.record) && get(*names, names->query, events.query) &&
      get(*names, names->elapsed, events.elapsed) &&
      get(*names, names->is_capturing, events.is_capturing) &&
      get(*names, names->exchange_mode, events.exchange_mode) &&
      get(*names, names->context_get, events.context_get) &&
      get(*names, names->context_set, events.context_set) &&
      get(*names, names->device_get, events.device_get) &&
      get(*names, names->device_state, events.device_state) &&
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

/// Takes a slot. Returns its number, from 1 on; 0 if many are in use.
unsigned take_slot() {
  const unsigned start = next_slot.fetch_add(1, std::memory_order_relaxed);
  for (unsigned i = 0; i < tries; ++i) {
    const unsigned at = (start + i) % slots;
    int before = is_free;
    if (slot[at].state.compare_exchange_strong(before, is_taken)) return at + 1;
  }
  return 0;
}

/// An error of the calls here is not one of the program's.
void clear_error(const Events& events) {
  if (events.last_error != nullptr) events.last_error();
}

/// Destroys the events of a slot and frees it.
void free_slot(Slot& used) {
  for (void* const event : {used.begin, used.end}) {
    if (event != nullptr) used.events->destroy(event);
  }
  used.begin = used.end = nullptr;
  used.state.store(is_free, std::memory_order_release);
}

/// Creates the events of a slot and records the first one.
bool begin_slot(Slot& used, void* stream) {
  const Events& events = *used.events;
  if (events.create(&used.begin, 0) == 0 && events.create(&used.end, 0) == 0 &&
      events.record(used.begin, stream) == 0) {
    return true;
  }
  clear_error(events);
  return false;
}

/// Returns whether events of the slot's device are there: a program may have reset it.
bool is_active(const Slot& used) {
  if (used.events->device_state == nullptr) return true;
  unsigned flags = 0;
  int active = 0;
  return used.events->device_state(used.device, &flags, &active) == 0 && active != 0;
}

/// Reads the time of a slot, and frees it if that is known, or never will be.
void read_time(Slot& used) {
  const Events& events = *used.events;
  if (!is_active(used)) {
    used.begin = used.end = nullptr;
    return free_slot(used);
  }
  const Relaxed relaxed(events);
  if (used.entry == nullptr) return free_slot(used);
  int status = events.query(used.end);
  if (status == no_context && events.context_set != nullptr) {
    events.context_set(used.context);
    status = events.query(used.end);
  }
  float ms = 0;
  if (status == 0) status = events.elapsed(&ms, used.begin, used.end);
  if (status == 0 && ms > 0) add_time(*used.entry, 1000 * ms);
  if (status != 0) clear_error(events);
  if (status == not_ready) return used.state.store(is_pending, std::memory_order_release);
  free_slot(used);
}

}  // namespace

EventTimer::EventTimer(const Library& library, Entry* entry, void* handle, void* stream) {
  if (entry == nullptr || !is_chosen(*entry) || is_untimed.load(std::memory_order_relaxed)) return;
  begin(library, entry, handle, stream);
}

namespace {

/// The last reading: what follows may destroy the driver. A reading of the writer's thread is
/// awaited for a second at most.
void read_last_times() {
  read_times();
  is_over.store(true);
  for (int i = 0; i < 1000 && readers.load() != 0; ++i) usleep(1000);
}

}  // namespace

void EventTimer::begin(const Library& library, Entry* entry, void* handle, void* stream) {
  const Events* const events = find_events(library.family->events);
  if (events == nullptr || (events->peek_error != nullptr && events->peek_error() != 0)) return;
  if (handle != nullptr &&
      (library.stream_get == nullptr || library.stream_get(handle, &stream) != 0)) {
    return;
  }
  const Relaxed relaxed(*events);
  int is_capturing = 0, device = 0;
  void* context = nullptr;
  if (events->is_capturing(stream, &is_capturing) != 0) return clear_error(*events);
  if (is_capturing != 0) return;
  if (events->context_get != nullptr && events->context_get(&context) != 0) return;
  if (events->device_get != nullptr && events->device_get(&device) != 0) return;
  const unsigned number = take_slot();
  if (number == 0) return;
  Slot& taken = slot[number - 1];
  taken.entry = entry, taken.events = events, taken.device = device, taken.context = context;
  if (!begin_slot(taken, stream)) return free_slot(taken);
  slot_ = number, stream_ = stream;
}

void EventTimer::end(bool has_succeeded) {
  if (slot_ == 0) return;
  Slot& taken = slot[slot_ - 1];
  if (!has_succeeded) {  // its error stays the last one; the reader destroys the events
    taken.entry = nullptr;
    taken.state.store(is_pending, std::memory_order_release);
    return;
  }
  const Relaxed relaxed(*taken.events);
  if (taken.events->record(taken.end, stream_) != 0) {
    clear_error(*taken.events);
    return free_slot(taken);
  }
  taken.state.store(is_pending, std::memory_order_release);
  // Before what the runtime does at the end, which was registered earlier.
  if (owner.exchange(getpid()) == 0) std::atexit(read_last_times);
}

void set_untimed() {
  is_untimed.store(true);
}

void read_times() {
  if (owner.load() != getpid()) return;  // a child of vfork has no events, but this memory
  readers.fetch_add(1);
  for (Slot& each : slot) {
    if (is_over.load()) break;
    int before = is_pending;
    if (!each.state.compare_exchange_strong(before, is_taken)) continue;
    read_time(each);
  }
  readers.fetch_sub(1);
}

void forget_times() {
  owner.store(0);
  readers.store(0);
  for (Slot& each : slot) {
    each.begin = each.end = nullptr;
    each.state.store(is_free);
  }
}

}  // namespace greta::capture
