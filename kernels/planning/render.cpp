#include "kernels/planning/render.hpp"

#include <fmt/format.h>

#include <set>

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

/// `once` contains files with #pragma once that are already in the text. Only the first line of a
/// text may be a #version, so those of included kernels are dropped.
void append(std::string& text, std::string_view path, const Defines& defines,
            std::set<std::string>& once) {
  if (once.contains(std::string(path))) return;
  std::string_view rest = embedded_file(path);
  while (!rest.empty()) {
    const std::string_view line = take_line(rest), included = included_file(line);
    if (!included.empty()) {
      append(text, included, {}, once);
      continue;
    }
    if (line == once_word) {
      once.emplace(path);
      continue;
    }
    const bool version = line.starts_with(version_word);
    if (version && !text.empty()) continue;
    text += line;
    text += '\n';
    if (version) append_defines(text, defines);
  }
}

}  // namespace

std::string render(std::string_view path, const Defines& defines) {
  std::string text;
  std::set<std::string> once;
  // GLSL requires #version in the first line.
  if (!embedded_file(path).starts_with(version_word)) append_defines(text, defines);
  append(text, path, defines, once);
  return text;
}

}  // namespace greta::kernels
