#include "kernels/model/embedded.hpp"

#include <algorithm>
#include <deque>
#include <string>

#include "runtime/device/result.hpp"
#include "runtime/device/system/input_file.hpp"

namespace greta::kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = 1 << 20;  // of one source file

struct Templates {
  fs::path folder;
  std::deque<std::string> texts;  // of the folder's files; a deque keeps views valid
  std::vector<EmbeddedFile> files = built_in_files();
};

Templates& templates() {
  static Templates active;
  return active;
}

bool is_source(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".comp" || extension == ".glsl" || extension == ".hip";
}

void replace(std::vector<EmbeddedFile>& files, const std::string& path, std::string_view text) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& file) { return file.path == path; });
  if (found == files.end()) throw Error(path + ": no kernel is made of a file of that name");
  found->text = text;
}

}  // namespace

const std::vector<EmbeddedFile>& embedded_files() {
  return templates().files;
}

const fs::path& template_folder() {
  return templates().folder;
}

void use_templates(const fs::path& folder) {
  Templates& active = templates();
  std::error_code error;
  active.files = built_in_files();
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    auto text = read_file(entry.path(), most_bytes);
    if (!text) throw Error(text.failure());
    replace(active.files, entry.path().lexically_relative(folder).generic_string(),
            active.texts.emplace_back(*std::move(text)));
  }
  if (error) throw Error(folder.string() + ": " + error.message());
  active.folder = folder;
}

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

}  // namespace greta::kernels
