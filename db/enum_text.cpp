#include "db/enum_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace greta::db {
namespace {

constexpr std::array statuses{
    Status::constraints, Status::compile, Status::launch,           Status::correctness,
    Status::timeout,     Status::crash,   Status::out_of_memory,    Status::unavailable,
    Status::device_lost, Status::io,      Status::invalid_argument,
};

constexpr std::array<std::string_view, 4> regret_sources{"same", "tie", "trials", "measured"};

constexpr std::array<std::string_view, 4> trial_phases{"plan", "search", "finals", "lost"};

constexpr std::array<std::string_view, 3> departures{"slower", "failed", "slower elsewhere"};

// Python's float() and JavaScript's Number() accept these names.
constexpr std::array<std::pair<std::string_view, double>, 3> special_numbers{{
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"-Infinity", -std::numeric_limits<double>::infinity()},
}};

/// Returns the value whose text is in `texts`, which are in the order of the values. Throws Error,
/// with `what` in the message, for other text.
template <typename Enum, std::size_t count>
Enum enum_from_text(const std::array<std::string_view, count>& texts, std::string_view text,
                    std::string_view what) {
  const auto found = std::find(texts.begin(), texts.end(), text);
  if (found == texts.end()) throw Error(fmt::format("unknown {} \"{}\"", what, text));
  return static_cast<Enum>(found - texts.begin());
}

/// Removes the first word from `rest` and returns it.
std::string_view next_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const auto word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

}  // namespace

std::string_view status_text(const std::optional<Status>& failure) {
  return failure ? to_string(*failure) : "ok";
}

std::optional<Status> status_from_text(std::string_view text) {
  if (text == "ok") return std::nullopt;
  for (const Status status : statuses) {
    if (text == to_string(status)) return status;
  }
  throw Error(fmt::format("unknown trial status \"{}\"", text));
}

std::string_view to_string(TrialPhase phase) {
  return trial_phases[static_cast<std::size_t>(phase)];
}

TrialPhase trial_phase_from_text(std::string_view text) {
  return enum_from_text<TrialPhase>(trial_phases, text, "phase of a trial");
}

std::string_view to_string(Departure departure) {
  return departures[static_cast<std::size_t>(departure)];
}

Departure departure_from_text(std::string_view text) {
  return enum_from_text<Departure>(departures, text, "departure of a finalist");
}

std::string_view to_string(Regret::Source source) {
  return regret_sources[static_cast<std::size_t>(source)];
}

Regret::Source regret_source_from_text(std::string_view text) {
  return enum_from_text<Regret::Source>(regret_sources, text, "source of a regret");
}

Config config_from_text(std::string_view text) {
  Config config;
  std::string_view rest = text;
  config.variant = next_word(rest);
  while (!rest.empty()) {
    const auto word = next_word(rest);
    const auto equals = std::min(word.find('='), word.size());
    const char* const end = word.data() + word.size();
    int value = 0;
    const auto [stop, error] =
        std::from_chars(word.data() + std::min(equals + 1, word.size()), end, value);
    if (equals == 0 || error != std::errc() || stop != end) {
      throw Error(
          fmt::format(R"("{}" is not a configuration: "{}" is not NAME=NUMBER)", text, word));
    }
    config.values.emplace_back(word.substr(0, equals), value);
  }
  return config;
}

nlohmann::json json_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

double number_from_json(const nlohmann::json& json, std::string_view name) {
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) {
    for (const auto& [text, value] : special_numbers) {
      if (json.get_ref<const std::string&>() == text) return value;
    }
  }
  throw Error(fmt::format("{}: not a number", name));
}

nlohmann::json json_numbers(const std::vector<double>& values) {
  auto numbers = nlohmann::json::array();
  for (const double value : values) numbers.push_back(json_number(value));
  return numbers;
}

std::vector<double> numbers_from_json(const nlohmann::json& json, std::string_view name) {
  if (!json.is_array()) throw Error(fmt::format("{}: not an array", name));
  std::vector<double> values;
  for (const auto& number : json) values.push_back(number_from_json(number, name));
  return values;
}

}  // namespace greta::db
