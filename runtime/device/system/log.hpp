#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

#include "runtime/device/layers.hpp"

namespace greta::device {

enum class LogLevel { debug, info, warning };

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Sets the receiver of log lines. An empty function, the initial state, drops them. Thread-safe:
/// the sink is never called by two threads at once. It must not log or set a sink itself.
void set_log_sink(LogSink sink);

/// Passes one line to the sink.
void log_line(LogLevel level, std::string_view line);

template <typename... Arguments>
void log(LogLevel level, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_line(level, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace greta::device
