#include "kernels/planning/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <utility>

#include "kernels/model/embedded.hpp"

namespace greta::kernels {
namespace {

constexpr std::string_view version_word = "#version ";
constexpr std::string_view once_word = "#pragma once";

void append_defines(std::string& text, const Defines& defines) {
  for (const auto& [parameter, value] : defines) {
    text += fmt::format("#define {} {}\n", parameter, value);
  }
}

/// Puts files in place of the lines that include them.
///
/// A file with #pragma once that a conditional includes may be left out by the compiler's
/// preprocessor, so its text has a guard, and comes again where it is included next.
class Renderer {
 public:
  explicit Renderer(const FindTemplate& find) : find_(find) {}

  /// Only the first line of a text may be a #version, so those of included kernels are dropped.
  void append(std::string_view path, const Defines& defines) {
    if (whole_.contains(path)) return;
    const bool once = has_line(find_(path), once_word);
    const bool conditional = depth_ > 0;
    const bool guarded = once && (conditional || guarded_.contains(path));
    if (guarded) open_guard(path);
    if (once) (conditional ? guarded_ : whole_).emplace(path);
    append_lines(path, defines);
    if (guarded) text_ += "#endif\n";
  }

  void define(const Defines& defines) { append_defines(text_, defines); }

  std::string text() && { return std::move(text_); }

 private:
  void append_lines(std::string_view path, const Defines& defines) {
    std::string_view rest = find_(path);
    while (!rest.empty()) {
      const std::string_view line = take_line(rest), included = included_file(line);
      if (!included.empty()) {
        append(included, {});
        continue;
      }
      const bool version = line.starts_with(version_word);
      if (line == once_word || (version && !text_.empty())) continue;
      if (line.starts_with("#if")) ++depth_;
      if (line.starts_with("#endif")) --depth_;
      text_ += line;
      text_ += '\n';
      if (version) append_defines(text_, defines);
    }
  }

  void open_guard(std::string_view path) {
    std::string macro = "GRETA_HAS_";
    for (const char c : path) macro += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    text_ += fmt::format("#if !defined({0})\n#define {0}\n", macro);
  }

  static bool has_line(std::string_view text, std::string_view wanted) {
    while (!text.empty()) {
      if (take_line(text) == wanted) return true;
    }
    return false;
  }

  const FindTemplate& find_;
  std::string text_;
  std::set<std::string, std::less<>> whole_;    // files that the text has, and not in a conditional
  std::set<std::string, std::less<>> guarded_;  // files that it has in conditionals
  int depth_ = 0;                               // of conditionals
};

}  // namespace

std::string define_name(std::string_view name) {
  std::string define(name);
  std::ranges::transform(define, define.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return define;
}

std::string render(std::string_view path, const Defines& defines) {
  return render(path, defines, embedded_file);
}

std::string render(std::string_view path, const Defines& defines, const FindTemplate& find) {
  Renderer renderer(find);
  // GLSL requires #version in the first line.
  if (!find(path).starts_with(version_word)) renderer.define(defines);
  renderer.append(path, defines);
  return std::move(renderer).text();
}

}  // namespace greta::kernels
