#include "tuner/report/csv_field.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "db/enum_text.hpp"

namespace greta::tuner::csv {
namespace {

// Precision of samples for later statistics: 1e-5 is far below their noise.
constexpr int sample_digits = 5;

constexpr std::array<std::string_view, 3> cache_states{"", "cold", "warm"};

template <typename Enum, std::size_t count>
void read_word(const std::string& text, const std::array<std::string_view, count>& words,
               Enum& value) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) throw Error(text + " is not known");
  value = static_cast<Enum>(found - words.begin());
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out + "\"";
}

// GRETA's enumerators and names need quotes only if a damaged database has changed them.
std::string to_field(const std::string& word) {
  return word.find_first_of(",\"\r\n") == std::string::npos ? word : quoted(word);
}
void read_field(const std::string& text, std::string& word) {
  word = text;
}

std::string to_field(double value) {
  return value != 0 ? fmt::format("{:.6g}", value) : "";
}
void read_field(const std::string& text, double& value) {
  if (!text.empty()) value = read_number<double>(text);
}

std::string to_field(std::size_t count) {
  return count > 0 ? std::to_string(count) : "";
}
void read_field(const std::string& text, std::size_t& count) {
  if (!text.empty()) count = read_number<std::size_t>(text);
}

// Formats blocks of samples as "1.5 1.6|1.4 1.5".
std::string to_field(const Blocks& blocks) {
  std::string text;
  for (const auto& block : blocks) {
    if (block.empty()) continue;
    if (!text.empty()) text += '|';
    for (std::size_t i = 0; i < block.size(); ++i) {
      text += fmt::format("{}{:.{}g}", i == 0 ? "" : " ", block[i], sample_digits);
    }
  }
  return text;
}
void read_field(std::string_view text, Blocks& blocks) {
  while (!text.empty()) {
    if (blocks.empty()) blocks.emplace_back();
    const auto end = text.find_first_of(" |");
    blocks.back().push_back(read_number<double>(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    if (text[end] == '|') blocks.emplace_back();
    text.remove_prefix(end + 1);
  }
}

std::string to_field(const std::vector<double>& numbers) {
  return to_field(Blocks{numbers});
}
void read_field(const std::string& text, std::vector<double>& numbers) {
  Blocks blocks;
  read_field(text, blocks);
  if (!blocks.empty()) numbers = blocks.front();
}

void check_times(double us) {
  if (!std::isfinite(us) || us < 0) throw Error(fmt::format("{} is not a time", us));
}
void check_times(const std::vector<double>& us) {
  for (const double one : us) check_times(one);
}
void check_times(const Blocks& blocks) {
  for (const auto& block : blocks) check_times(block);
}

std::string to_field(const std::optional<Config>& config) {
  return quoted(config ? config->text() : "");
}
void read_field(const std::string& text, std::optional<Config>& config) {
  if (!text.empty()) config = config_from_text(text);
}

std::string to_field(const std::optional<Failure>& failure) {
  return std::string(failure ? to_string(failure->status) : "ok");
}
void read_field(const std::string& text, std::optional<Failure>& failure) {
  if (const auto status = status_from_text(text)) failure = Failure{*status, text, {}};
}

std::string to_field(ResultOrigin origin) {
  return std::string(to_string(origin));
}
void read_field(const std::string& text, ResultOrigin& origin) {
  read_word(text, result_origins, origin);
}

std::string to_field(CacheState cache) {
  return std::string(cache_states[static_cast<std::size_t>(cache)]);
}
void read_field(const std::string& text, CacheState& cache) {
  read_word(text, cache_states, cache);
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool doubled = inside && c == '"' && i + 1 < line.size() && line[i + 1] == '"';
    if (doubled) {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      inside = !inside;
    } else if (c == ',' && !inside) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (inside) throw Error("a quote is not closed");
  return fields;
}

}  // namespace greta::tuner::csv
