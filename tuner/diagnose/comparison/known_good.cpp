#include "tuner/diagnose/comparison/known_good.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "runtime/device/system/input_file.hpp"
#include "tuner/diagnose/comparison/case_sources.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;  // of one source file

Failure refused(const fs::path& path, const std::string& why) {
  return {Status::invalid_argument, fmt::format("{}: {}", path.string(), why), {}};
}

std::string names_of(const SourceFiles& files) {
  constexpr std::size_t most_named = 8;
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, text] : files) {
    if (++count <= most_named) names += (names.empty() ? "" : ", ") + name;
  }
  return count > most_named ? fmt::format("{} and {} more", names, count - most_named) : names;
}

bool ends_with_path(const fs::path& whole, const fs::path& end) {
  return ("/" + whole.generic_string()).ends_with("/" + end.generic_string());
}

/// Returns the share of the lines of two texts that both have.
double likeness(const std::string& a, const std::string& b) {
  const auto lines_of = [](const std::string& text) {
    std::multiset<std::string_view> lines;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (line.find_first_not_of(" \t{}();") != std::string_view::npos) lines.insert(line);
    }
    return lines;
  };
  const auto lines = lines_of(a), others = lines_of(b);
  std::vector<std::string_view> both;
  std::set_intersection(lines.begin(), lines.end(), others.begin(), others.end(),
                        std::back_inserter(both));
  const std::size_t most = std::max(lines.size(), others.size());
  return most == 0 ? 0 : static_cast<double>(both.size()) / static_cast<double>(most);
}

/// Returns the name of the file of which a file is a version; empty: of none.
std::string counterpart(const SourceFiles& own, const fs::path& file, const std::string& text) {
  std::vector<std::string> same_name;
  for (const auto& [name, known] : own) {
    if (ends_with_path(fs::absolute(file).lexically_normal(), name)) return name;
    if (fs::path(name).filename() == file.filename()) same_name.push_back(name);
  }
  if (same_name.size() == 1) return same_name.front();
  constexpr double least_likeness = 0.5;
  std::string best;
  double most = least_likeness;
  for (const auto& [name, known] : own) {
    const double like = likeness(known, text);
    if (fs::path(name).extension() != file.extension() || like < most) continue;
    most = like;
    best = name;
  }
  return best;
}

Result<SourceFiles> files_at(const FailedCase& failed, const SourceFiles& own,
                             const fs::path& path) {
  SourceFiles read;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    auto text = read_file(path, most_bytes);
    if (!text) return text.failure();
    const std::string name = counterpart(own, path, *text);
    if (name.empty())
      return refused(path, "is not a version of a file of the case's kernel: " + names_of(own));
    read[name] = *std::move(text);
    return read;
  }
  const auto find = [&](const std::string& name) -> const std::string* {
    if (const auto known = read.find(name); known != read.end()) return &known->second;
    std::error_code none;
    if (fs::is_regular_file(path / name, none))
      return &(read[name] = read_file(path / name, most_bytes).value());
    return find_in(failed.files)(name);
  };
  files_of(failed, find);
  if (read.empty()) return refused(path, "has no file of the case's kernel: " + names_of(own));
  return read;
}

}  // namespace

Result<KnownGood> known_good_at(const FailedCase& failed, const fs::path& path) {
  if (failed.files.empty()) {
    return refused(path, "can't be compared: the case does not contain the files of its kernel");
  }
  try {
    const SourceFiles own = files_of(failed, find_in(failed.files));
    auto files = files_at(failed, own, path);
    if (!files) return files.failure();
    KnownGood made = other_files(path.string(), *std::move(files), own);
    if (made.name.empty()) return refused(path, "the case's sources are equal to it");
    return made;
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

}  // namespace greta::tuner
