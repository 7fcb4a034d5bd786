#include "kernels/model/embedded.hpp"

#include <algorithm>
#include <string>

#include "runtime/device/result.hpp"

namespace greta {

std::string_view embedded_file(std::string_view path) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path == path) return file.text;
  }
  throw Error("no kernel source \"" + std::string(path) + "\" was built into the library");
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string_view included_file(std::string_view line) {
  constexpr std::string_view word = "#include \"";
  if (!line.starts_with(word)) return {};
  line.remove_prefix(word.size());
  return line.substr(0, line.find('"'));
}

}  // namespace greta
