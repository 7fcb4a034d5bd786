#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json_fwd.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/device/printable.hpp"

namespace greta::tuner {

// Everything that GRETA's tools write to standard output and standard error goes through these
// functions. What they are given may come from databases, presets, models, devices, compilers, file
// names and the environment: no control character of it but newlines and tabs is written as it is
// (runtime/device/printable.hpp).

/// Writes a text of any number of lines.
void print_text(std::FILE* stream, std::string_view text);
/// The same on standard output.
void print_text(std::string_view text);

/// Writes one line on standard error; `line` has no newline at its end.
void tell(std::string_view line);

/// Writes JSON on standard output, indented by `indent` (-1: on one line), and a newline; bytes
/// that are no UTF-8 become U+FFFD.
void print_json(const nlohmann::json& json, int indent = 2);
void print_json(const nlohmann::ordered_json& json, int indent = 2);

/// What a process of GRETA's own printed as its result: the last line that is a JSON object whose
/// first key is `key`, as drivers may have written something as well. Empty where there is none.
nlohmann::json printed_result(const std::string& output, const std::string& key);

/// On a terminal: empties the line that the cursor is in.
void clear_line(std::FILE* stream);

/// What print() makes of an argument: text belongs on one line.
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

/// Writes a formatted text, in which no argument begins a new line: newlines and tabs come from
/// `format` alone. Texts of several lines are for print_text().
template <typename... Arguments>
void print(std::FILE* stream, fmt::format_string<Shown<std::type_identity_t<Arguments>>...> format,
           const Arguments&... arguments) {
  print_text(stream, fmt::format(fmt::runtime(fmt::string_view(format)), shown(arguments)...));
}
/// The same on standard output.
template <typename... Arguments>
void print(fmt::format_string<Shown<std::type_identity_t<Arguments>>...> format,
           const Arguments&... arguments) {
  print_text(fmt::format(fmt::runtime(fmt::string_view(format)), shown(arguments)...));
}

/// While it lives, a stream of the C++ library writes through print_text(): for libraries that
/// print by themselves.
class PrintedStream {
 public:
  /// `to`: what `stream` would write to.
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
