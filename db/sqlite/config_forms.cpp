#include "db/sqlite/config_forms.hpp"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "db/values.hpp"

namespace greta {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

ConfigForms::ConfigForms(SQLite::Database& database) : database_(database) {
  SQLite::Statement select(database, "SELECT id, names FROM config_forms");
  while (select.executeStep()) {
    const auto names = select.getColumn(1).getString();
    names_.emplace(select.getColumn(0).getInt64(), words_of(names));
    ids_.emplace(names, select.getColumn(0).getInt64());
  }
}

Config ConfigForms::read(std::string_view stored) const {
  if (!stored.starts_with('#')) return config_from_text(stored);
  std::vector<std::int64_t> numbers;
  const char* next = stored.data() + 1;
  const char* const end = stored.data() + stored.size();
  while (next < end) {
    const auto [stop, error] = std::from_chars(next, end, numbers.emplace_back());
    if (error != std::errc() || (stop < end && *stop != ' ')) {
      throw Error(fmt::format("\"{}\" is not a packed configuration", stored));
    }
    next = stop + (stop < end ? 1 : 0);
  }
  const auto form = numbers.empty() ? names_.end() : names_.find(numbers.front());
  if (form == names_.end() || form->second.size() != numbers.size()) {
    throw Error(fmt::format("\"{}\" is packed by a form that is not there", stored));
  }
  Config config{form->second.front(), {}};
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (!std::in_range<int>(numbers[i])) {
      throw Error(fmt::format("\"{}\": a value is out of range", stored));
    }
    config.values.emplace_back(form->second[i], static_cast<int>(numbers[i]));
  }
  return config;
}

std::string ConfigForms::pack(const Config& config) {
  std::string names = config.variant;
  for (const auto& [name, value] : config.values) names += " " + name;
  auto found = ids_.find(names);
  if (found == ids_.end()) {
    SQLite::Statement insert(database_, "INSERT INTO config_forms (names) VALUES (?) RETURNING id");
    insert.bind(1, names);
    insert.executeStep();
    const auto id = insert.getColumn(0).getInt64();
    found = ids_.emplace(names, id).first;
    names_.emplace(id, words_of(names));
  }
  std::string packed = fmt::format("#{}", found->second);
  for (const auto& [name, value] : config.values) packed += fmt::format(" {}", value);
  return packed;
}

}  // namespace greta
