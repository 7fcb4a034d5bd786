#include "kernels/templates/common/render.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/model/embedded.hpp"

namespace greta {
namespace {

constexpr std::string_view version_word = "#version ";
constexpr std::string_view include_word = "#include \"";

void append(std::string& text, std::string_view path, const Defines& defines) {
  std::string_view rest = embedded_file(path);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with(include_word)) {
      const std::string_view name = line.substr(include_word.size());
      append(text, name.substr(0, name.find('"')), {});
      continue;
    }
    text += line;
    text += '\n';
    if (!line.starts_with(version_word)) continue;
    for (const auto& [parameter, value] : defines) {
      text += fmt::format("#define {} {}\n", parameter, value);
    }
  }
}

}  // namespace

std::string render(std::string_view path, const Defines& defines) {
  std::string text;
  append(text, path, defines);
  return text;
}

}  // namespace greta
