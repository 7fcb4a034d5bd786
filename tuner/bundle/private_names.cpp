#include "tuner/bundle/private_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

namespace greta::tuner {
namespace {

/// Names that identify nobody.
constexpr std::array<std::string_view, 6> nobody{"root",   "user",      "ubuntu",
                                                 "debian", "localhost", "localhost.localdomain"};

/// Shorter names match too many other words.
constexpr std::size_t fewest_characters = 2;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Returns the position from `from` on where a name occurs as a whole word, or npos.
std::size_t find_word(std::string_view text, std::string_view name, std::size_t from) {
  for (auto at = text.find(name, from); at != text.npos; at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    const bool begins = at == 0 || !is_word(name.front()) || !is_word(text[at - 1]);
    if (begins && (end == text.size() || !is_word(text[end]))) return at;
  }
  return text.npos;
}

bool is_path(char c) {
  return is_word(c) || std::string_view("-./+~%@").find(c) != std::string_view::npos;
}

/// Returns whether the word from `at` to `end` is part of an absolute path outside the system's
/// folders. /run/media/user and similar folders contain users' folders. Text that begins with a
/// dash is an option, which may be followed directly by its value.
bool in_path(std::string_view text, std::size_t at, std::size_t end) {
  constexpr std::array<std::string_view, 13> system{"/bin/",   "/boot/", "/dev/", "/etc/",  "/lib/",
                                                    "/lib64/", "/nix/",  "/opt/", "/proc/", "/run/",
                                                    "/sbin/",  "/sys/",  "/usr/"};
  if (at == 0 || text[at - 1] != '/') return false;
  if (end < text.size() && text[end] != '/' && is_path(text[end])) return false;
  std::size_t start = at;
  while (start > 0 && is_path(text[start - 1])) --start;
  if (text[start] == '-') start = text.find('/', start);
  const std::string_view path = text.substr(start);
  const bool division = start > 0 && (text[start - 1] == ')' || text[start - 1] == ']');
  if (path.front() != '/' || division) return false;
  if (path.starts_with("/run/media/") || path.starts_with("/run/user/")) return true;
  return std::none_of(system.begin(), system.end(),
                      [&](auto folder) { return path.starts_with(folder); });
}

/// Removes the names of all folders below /home.
std::string without_homes(std::string text) {
  constexpr std::string_view homes = "/home/";
  for (auto at = text.find(homes); at != text.npos; at = text.find(homes, at + 1)) {
    auto end = at + homes.size();
    while (end < text.size() && (is_word(text[end]) || text[end] == '-' || text[end] == '.')) ++end;
    text.replace(at, end - at, "~");
  }
  return text;
}

}  // namespace

PrivateNames::PrivateNames(std::vector<std::string> homes, std::vector<std::string> users,
                           std::vector<std::string> hosts, const std::vector<std::string>& common) {
  const auto add = [&](std::vector<std::string>& names, const char* stand_in) {
    for (std::string& name : names) {
      while (name.size() > 1 && name.back() == '/') name.pop_back();
      const bool known = std::find(nobody.begin(), nobody.end(), name) != nobody.end();
      if (name.empty() || name == "/" || known) continue;
      const bool path = name.find('/') != name.npos;
      const bool other = !path && (name.size() < fewest_characters ||
                                   std::find(common.begin(), common.end(), name) != common.end());
      names_.push_back({std::move(name), stand_in, path, other});
    }
  };
  add(homes, "~");
  add(users, "USER");
  add(hosts, "HOST");
  std::stable_sort(names_.begin(), names_.end(),
                   [](const Name& a, const Name& b) { return a.text.size() > b.text.size(); });
}

std::size_t PrivateNames::find(std::string_view text, const Name& name, bool sure,
                               std::size_t from) {
  const auto names_somebody = [&](std::size_t at) {
    const auto end = at + name.text.size();
    return (at > 0 && text[at - 1] == '@') || (end < text.size() && text[end] == '@') ||
           in_path(text, at, end);
  };
  auto at = find_word(text, name.text, from);
  while (at != text.npos && sure && !names_somebody(at)) {
    at = find_word(text, name.text, at + 1);
  }
  return at;
}

std::string PrivateNames::replaced(std::string text, bool program) const {
  for (const Name& name : names_) {
    const bool sure = name.common || (program && !name.path);
    for (auto at = find(text, name, sure, 0); at != text.npos;
         at = find(text, name, sure, at + name.stand_in.size())) {
      text.replace(at, name.text.size(), name.stand_in);
    }
  }
  return without_homes(std::move(text));
}

std::string PrivateNames::without(std::string text) const {
  return replaced(std::move(text), false);
}

std::string PrivateNames::without_in_program(std::string text) const {
  return replaced(std::move(text), true);
}

bool PrivateNames::in(std::string_view bytes) const {
  return std::any_of(names_.begin(), names_.end(), [&](const Name& name) {
    return find(bytes, name, name.common, 0) != bytes.npos;
  });
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t end = 0; end < text.size();) {
    const auto start =
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), is_word);
    const auto stop = std::find_if_not(start, text.end(), is_word);
    if (start != stop) words.emplace_back(start, stop);
    end = static_cast<std::size_t>(stop - text.begin());
  }
  return words;
}

}  // namespace greta::tuner
