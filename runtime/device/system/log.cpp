#include "runtime/device/system/log.hpp"

#include <mutex>

namespace greta::device {

namespace {

struct State {
  std::mutex mutex;
  LogSink sink;
};

// The state is never destroyed: other static objects may log while the process exits.
State& state() {
  static auto* const instance = new State;
  return *instance;
}

}  // namespace

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
}

void log_line(LogLevel level, std::string_view line) {
  const std::lock_guard lock(state().mutex);
  if (state().sink) state().sink(level, line);
}

}  // namespace greta::device
