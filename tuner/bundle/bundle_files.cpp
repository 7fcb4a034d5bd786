#include "tuner/bundle/bundle_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/device/system/input_file.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void take_out(const PrivateNames& names, Json& json) {
  if (json.is_string()) json = names.without(json.get<std::string>());
  if (json.is_structured()) {
    for (auto& part : json) take_out(names, part);
  }
}

enum class Kind { text, json, program, code, numbers };

Kind kind_of(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".co" || extension == ".spv") return Kind::code;
  if (extension == ".hip" || extension == ".comp") return Kind::program;
  if (extension == ".json") return Kind::json;
  return extension == ".bin" || extension == ".f64" ? Kind::numbers : Kind::text;
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Returns the contents without private names; unchanged if there are none.
std::string without(const PrivateNames& names, Kind kind, const std::string& contents) {
  if (kind == Kind::code || kind == Kind::numbers) return contents;
  if (kind == Kind::program) return names.without_in_program(contents);
  const Json json =
      kind == Kind::json ? Json::parse(contents, nullptr, false) : Json(Json::value_t::discarded);
  if (json.is_discarded()) return names.without(contents);  // plain text or incomplete JSON
  Json changed = json;
  take_out(names, changed);
  return changed == json ? contents : text_of(changed);
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
  Json changed = json;
  take_out(names_, changed);
  add(path, text_of(changed));
}

void BundleFiles::remark(const std::string& path, const std::string& what) {
  remarks_ += fmt::format("{}: {}\n", path, names_.without(what));
}

void BundleFiles::add_file(const std::string& path, const fs::path& file) {
  const std::size_t room = most_bytes_ - std::min(bytes_, most_bytes_);
  std::error_code error;
  if (const auto size = fs::file_size(file, error); !error && size > room) {
    return remark(path, fmt::format("omitted: it has {}, and {} remain",
                                    format_bytes(static_cast<double>(size)),
                                    format_bytes(static_cast<double>(room))));
  }
  auto contents = read_file(file, room);
  if (!contents) return remark(path, "omitted: " + contents.failure().message);
  const Kind kind = kind_of(file);
  if (kind == Kind::code && names_.in(*contents)) {
    return remark(path, "omitted: the compiler put a private name into it");
  }
  std::string kept = without(names_, kind, *contents);
  if (kept != *contents) remark(path, "private names in it were replaced");
  add(path, std::move(kept));
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

}  // namespace greta::tuner
