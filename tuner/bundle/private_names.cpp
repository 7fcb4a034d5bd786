#include "tuner/bundle/private_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace greta {
namespace {

/// Of every machine, or of none in particular.
constexpr std::array<std::string_view, 6> nobody{"root",   "user",      "ubuntu",
                                                 "debian", "localhost", "localhost.localdomain"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Where a name stands as a word from `from` on; npos: nowhere.
std::size_t find_word(std::string_view text, std::string_view name, std::size_t from) {
  for (auto at = text.find(name, from); at != text.npos; at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    const bool begins = at == 0 || !is_word(name.front()) || !is_word(text[at - 1]);
    if (begins && (end == text.size() || !is_word(text[end]))) return at;
  }
  return text.npos;
}

/// Folders below /home, whoever's they are.
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
                           std::vector<std::string> hosts) {
  const auto add = [&](std::vector<std::string>& names, const char* stand_in) {
    for (std::string& name : names) {
      while (name.size() > 1 && name.back() == '/') name.pop_back();
      const bool known = std::find(nobody.begin(), nobody.end(), name) != nobody.end();
      if (!name.empty() && name != "/" && !known) names_.push_back({std::move(name), stand_in});
    }
  };
  add(homes, "~");
  add(users, "USER");
  add(hosts, "HOST");
  std::stable_sort(names_.begin(), names_.end(),
                   [](const Name& a, const Name& b) { return a.text.size() > b.text.size(); });
}

std::string PrivateNames::without(std::string text) const {
  for (const auto& [name, stand_in] : names_) {
    for (auto at = find_word(text, name, 0); at != text.npos;
         at = find_word(text, name, at + stand_in.size())) {
      text.replace(at, name.size(), stand_in);
    }
  }
  return without_homes(std::move(text));
}

bool PrivateNames::in(std::string_view bytes) const {
  return std::any_of(names_.begin(), names_.end(), [&](const Name& name) {
    return find_word(bytes, name.text, 0) != bytes.npos;
  });
}

}  // namespace greta
