#include "db/sqlite/config_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "db/enum_text.hpp"
#include "db/sqlite/guard.hpp"

namespace greta::db {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Returns the numbers after the first character, which are separated by single spaces.
std::vector<int> read_numbers(std::string_view stored) {
  std::vector<int> numbers;
  const char* next = stored.data() + 1;
  const char* const end = stored.data() + stored.size();
  while (next < end) {
    const auto [stop, error] = std::from_chars(next, end, numbers.emplace_back());
    if (error != std::errc() || (stop < end && *stop != ' ')) {
      throw Error(fmt::format("\"{}\" is not a packed configuration", stored));
    }
    next = stop + (stop < end ? 1 : 0);
  }
  return numbers;
}

bool same_names(const Config& a, const Config& b) {
  return a.variant == b.variant &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

std::string difference(const Config& config, const Config& base) {
  std::string text = "~";
  for (std::size_t i = 0; i < config.values.size(); ++i) {
    const int value = config.values[i].second;
    if (value == base.values[i].second) continue;
    text += fmt::format("{}{} {}", text.size() > 1 ? " " : "", i, value);
  }
  return text;
}

Config changed(Config base, std::string_view stored) {
  const auto numbers = read_numbers(stored);
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    if (i + 1 == numbers.size() || numbers[i] < 0 ||
        static_cast<std::size_t>(numbers[i]) >= base.values.size()) {
      throw Error(fmt::format("\"{}\" is not a difference from \"{}\"", stored, base.text()));
    }
    base.values[static_cast<std::size_t>(numbers[i])].second = numbers[i + 1];
  }
  return base;
}

}  // namespace

ConfigForms::ConfigForms(SQLite::Database& database) : database_(database) {
  SQLite::Statement select(database, "SELECT id, names FROM config_forms");
  while (select.executeStep()) {
    const auto names = select.getColumn(1).getString();
    texts_.emplace(select.getColumn(0).getInt64(), names);
    ids_.emplace(names, select.getColumn(0).getInt64());
  }
}

Config ConfigForms::read(std::string_view stored, const Config* base) const {
  if (base != nullptr && stored.starts_with('~')) return changed(*base, stored);
  if (!stored.starts_with('#')) return config_from_text(stored);
  const auto numbers = read_numbers(stored);
  const auto form = numbers.empty() ? texts_.end() : texts_.find(numbers.front());
  const auto names = form == texts_.end() ? std::vector<std::string>() : words_of(form->second);
  if (names.empty() || names.size() != numbers.size()) {
    throw Error(fmt::format("\"{}\" is packed by a form that is not there", stored));
  }
  Config config{names.front(), {}};
  for (std::size_t i = 1; i < numbers.size(); ++i) config.values.emplace_back(names[i], numbers[i]);
  return config;
}

std::string ConfigForms::pack(const Config& config, const Config* base) {
  if (base != nullptr && same_names(config, *base)) return difference(config, *base);
  std::string names = config.variant;
  for (const auto& [name, value] : config.values) names += " " + name;
  std::string packed = fmt::format("#{}", add(names));
  for (const auto& [name, value] : config.values) packed += fmt::format(" {}", value);
  return packed;
}

std::int64_t ConfigForms::add(const std::string& text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto id = next_id(database_, "config_forms");
  SealedInsert insert(database_, "config_forms", Existing::refused, {"id", "names"});
  insert.row().bind(":id", id);
  insert.row().bind(":names", text);
  insert.run();
  ids_.emplace(text, id);
  texts_.emplace(id, text);
  return id;
}

std::string ConfigForms::share(const std::string& text) {
  return text.empty() ? text : fmt::format("#{}", add(text));
}

std::string ConfigForms::expand(const std::string& stored) const {
  if (stored.empty()) return stored;
  std::int64_t id = 0;
  const char* const end = stored.data() + stored.size();
  const auto [stop, error] = std::from_chars(stored.data() + 1, end, id);
  const auto found = texts_.find(id);
  if (stored.front() != '#' || error != std::errc() || stop != end || found == texts_.end()) {
    throw Error(fmt::format("\"{}\" stands for a text that is not there", stored));
  }
  return found->second;
}

}  // namespace greta::db
