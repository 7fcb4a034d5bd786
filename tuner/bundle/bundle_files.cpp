#include "tuner/bundle/bundle_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/device/input_file.hpp"
#include "tuner/report/format.hpp"

namespace greta {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void take_out(const PrivateNames& names, Json& json) {
  if (json.is_string()) json = names.without(json.get<std::string>());
  if (json.is_structured()) {
    for (auto& part : json) take_out(names, part);
  }
}

enum class Kind { text, code, numbers };

Kind kind_of(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".co" || extension == ".spv") return Kind::code;
  return extension == ".bin" || extension == ".f64" ? Kind::numbers : Kind::text;
}

}  // namespace

void BundleFiles::add(const std::string& path, std::string contents) {
  bytes_ += contents.size();
  files_.push_back({path, std::move(contents)});
}

void BundleFiles::add_text(const std::string& path, const std::string& text) {
  add(path, names_.without(text));
}

void BundleFiles::add_json(const std::string& path, const Json& json) {
  Json without = json;
  take_out(names_, without);
  add(path, without.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void BundleFiles::remark(const std::string& path, const std::string& what) {
  remarks_ += fmt::format("{}: {}\n", path, names_.without(what));
}

void BundleFiles::add_file(const std::string& path, const fs::path& file) {
  const std::size_t room = most_bytes_ - std::min(bytes_, most_bytes_);
  std::error_code error;
  if (const auto size = fs::file_size(file, error); !error && size > room) {
    return remark(path, fmt::format("left out, as it has {} and there is room for {}",
                                    format_bytes(static_cast<double>(size)),
                                    format_bytes(static_cast<double>(room))));
  }
  auto contents = read_file(file, room);
  if (!contents) return remark(path, "left out: " + contents.failure().message);
  const Kind kind = kind_of(file);
  if (kind == Kind::code && names_.in(*contents)) {
    return remark(path, "left out, as the compiler put a private name into it");
  }
  if (kind == Kind::text) {
    std::string text = names_.without(*contents);
    if (text != *contents) remark(path, "private names in it were replaced");
    *contents = std::move(text);
  }
  add(path, *std::move(contents));
}

void BundleFiles::add_folder(const std::string& path, const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  for (const auto& file : found) {
    add_file(path + "/" + file.lexically_relative(folder).string(), file);
  }
}

void BundleFiles::arrange(const std::string& folder) {
  std::stable_sort(files_.begin(), files_.end(), [](const ArchiveFile& a, const ArchiveFile& b) {
    return std::pair(a.path != "README.txt", a.path) < std::pair(b.path != "README.txt", b.path);
  });
  for (auto& file : files_) file.path = folder + "/" + file.path;
}

}  // namespace greta
