#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/device/text/printable.hpp"

namespace greta::tuner {

// All output of GRETA's tools to standard output and standard error goes through these functions.
// Their arguments may come from databases, presets, models, devices, compilers, file names and the
// environment, so control characters other than newlines and tabs are escaped
// (runtime/device/text/printable.hpp).

/// Writes a text of any number of lines.
void print_text(std::FILE* stream, std::string_view text);
/// Writes a text to standard output.
void print_text(std::string_view text);

/// Writes one line to standard error; `line` has no newline at its end.
void tell(std::string_view line);

/// Writes JSON and a newline to standard output, indented by `indent` (-1: on one line). Invalid
/// UTF-8 becomes U+FFFD.
void print_json(const nlohmann::json& json, int indent = 2);
void print_json(const nlohmann::ordered_json& json, int indent = 2);

/// Writes JSON objects, each on a line, to a duplicate of a stream's descriptor, and each at once.
/// If the reader has gone or the file is full, further objects are dropped. Thread-safe. The
/// process must ignore SIGPIPE.
class LineStream {
 public:
  explicit LineStream(std::FILE* stream);
  ~LineStream();
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  void write(const nlohmann::ordered_json& object);
  /// Returns whether objects are dropped.
  bool closed() const;
  /// Returns whether an object could not be written for another reason than a reader that left.
  bool failed() const;

 private:
  mutable std::mutex mutex_;
  int descriptor_;
  bool failed_ = false;
};

/// Returns the result that a GRETA process printed: the last line that is a JSON object whose first
/// key is `key`, since drivers may print other lines. Empty if there is none.
nlohmann::json printed_result(const std::string& output, const std::string& key);

/// Shows lines on a terminal, below everything that was printed before, in place of the lines that
/// this function showed before. Whatever is printed afterwards removes them. Thread-safe.
void show_below(std::FILE* stream, const std::vector<std::string>& lines);
/// Leaves these lines where they are, because something else was written after them. May be called
/// by a signal handler.
void leave_below();

/// Converts an argument of print(). Text is kept on one line.
template <typename T>
auto shown(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return one_line(value);
  } else {
    return value;
  }
}
template <typename T>
using Shown = decltype(shown(std::declval<const std::remove_cvref_t<T>&>()));

/// Writes a formatted text. Newlines and tabs come from `format` alone, so no argument can begin a
/// new line. Use print_text() for texts of several lines.
template <typename... Arguments>
void print(std::FILE* stream, fmt::format_string<Shown<std::type_identity_t<Arguments>>...> format,
           const Arguments&... arguments) {
  print_text(stream, fmt::format(fmt::runtime(fmt::string_view(format)), shown(arguments)...));
}
/// Writes a formatted text to standard output.
template <typename... Arguments>
void print(fmt::format_string<Shown<std::type_identity_t<Arguments>>...> format,
           const Arguments&... arguments) {
  print_text(fmt::format(fmt::runtime(fmt::string_view(format)), shown(arguments)...));
}

/// Redirects a C++ stream to print_text() during its lifetime, for libraries that print directly.
class PrintedStream {
 public:
  /// `to` is the stream that receives the output of `stream`.
  PrintedStream(std::ostream& stream, std::FILE* to);
  ~PrintedStream();
  PrintedStream(const PrintedStream&) = delete;
  PrintedStream& operator=(const PrintedStream&) = delete;

 private:
  class Buffer : public std::stringbuf {
   public:
    explicit Buffer(std::FILE* to) : to_(to) {}
    int sync() override;

   private:
    std::FILE* to_;
  };

  std::ostream& stream_;
  Buffer buffer_;
  std::streambuf* before_;
};

}  // namespace greta::tuner
