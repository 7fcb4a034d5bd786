#pragma once

#include <cstdint>

namespace greta::capture {

struct Entry;
struct Library;

/// Names of the functions of CUDA's driver or of HIP that time what a stream does.
struct EventNames {
  const char *file, *create, *destroy, *record, *query, *elapsed, *is_capturing, *exchange_mode;
  const char *context_get, *context_set;  ///< nullptr: events need no current context
  const char *device_get, *device_state;  ///< nullptr: events can be asked for after a reset
  const char *last_error, *peek_error;    ///< nullptr: there is no last error
};
extern const EventNames cuda_events, hip_events;

/// Times a call on the device by two events in its stream. Only few calls of a kind are timed: the
/// 2nd, 8th, 32nd, 128th, 512th, and each 2048th. The first one, which loads the kernel, is not.
/// Nothing waits for an event, and a stream that is recorded into a graph gets none.
class EventTimer {
 public:
  /// Records the event before the call. `handle`, if there is one, is asked for the stream.
  EventTimer(const Library& library, Entry* entry, void* handle, void* stream);
  /// Records the one after it.
  void end(bool has_succeeded);

 private:
  void begin(const Library& library, Entry* entry, void* handle, void* stream);

  unsigned slot_ = 0;  ///< from 1 on; 0: the call is not timed
  void* stream_ = nullptr;
};

/// Calls are timed unless this is set.
void set_untimed();

/// Reads the events that the device has passed. Not while libraries are being destroyed.
void read_times();

/// In a child of fork: the parent's events are not there.
void forget_times();

}  // namespace greta::capture
