#include "tuner/bench/acceptance.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/printable.hpp"
#include "tuner/bench/json_text.hpp"

namespace greta::tuner {
namespace {

using AcceptedJson = nlohmann::json;

constexpr std::uint64_t most_acceptance_bytes = std::uint64_t{1} << 20;

[[noreturn]] void refuse_acceptance(const std::string& place, const std::string& why) {
  throw Error(place.empty() ? why : place + ": " + why);
}

std::string text_of_acceptance(const AcceptedJson& value, const std::string& place) {
  if (!value.is_string()) refuse_acceptance(place, "must be text");
  const auto text = one_line(value.get<std::string>());
  if (text.find_first_not_of(' ') == std::string::npos) refuse_acceptance(place, "is empty");
  return text;
}

// Reads "12 %" as 0.12.
double read_slowdown(const std::string& text, const std::string& place) {
  double percent = 0;
  char unit = 0;
  int end = 0;
  const int read = std::sscanf(text.c_str(), "%lf %c %n", &percent, &unit, &end);
  if (read != 2 || unit != '%' || static_cast<std::size_t>(end) != text.size() || !(percent > 0) ||
      percent > 1000) {
    refuse_acceptance(place, text + ": must be a percentage up to 1000 %, such as \"12 %\"");
  }
  return percent / 100;
}

std::string read_day(const std::string& text, const std::string& place) {
  int year = 0, end = 0;
  unsigned month = 0, day = 0;
  const int read = std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &end);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (read != 3 || end != 10 || text.size() != 10 || !date.ok()) {
    refuse_acceptance(place, text + ": must be a date, such as 2026-12-31");
  }
  return text;
}

Acceptance read_acceptance(const AcceptedJson& entry, const std::string& place) {
  if (!entry.is_object()) refuse_acceptance(place, "is not an object");
  Acceptance read;
  for (const auto& [name, value] : entry.items()) {
    const std::string here = place + "." + name;
    const auto text = [&, &given = value] { return text_of_acceptance(given, here); };
    if (name == "benchmark") {
      read.benchmark = text();
    } else if (name == "device") {
      read.device = text();
    } else if (name == "slower") {
      read.most = read_slowdown(text(), here);
    } else if (name == "reason") {
      read.reason = text();
    } else if (name == "until") {
      read.until = read_day(text(), here);
    } else {
      refuse_acceptance(here, "unknown key");
    }
  }
  for (const char* needed : {"benchmark", "slower", "reason", "until"}) {
    if (!entry.contains(needed)) refuse_acceptance(place + "." + needed, "is missing");
  }
  return read;
}

bool matches_pattern(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool is_of(const Acceptance& acceptance, const ResultChange& row) {
  return matches_pattern(acceptance.benchmark, benchmark_name(row.fresh.subject)) &&
         matches_pattern(acceptance.device, one_line(row.fresh.subject.device));
}

int rank_of(const ResultChange& row) {
  if (row.is_regression()) return 0;
  return row.acceptance ? 1 : 2;
}

}  // namespace

Result<std::vector<Acceptance>> read_acceptances(const std::filesystem::path& file) {
  try {
    const auto text = read_file(file, most_acceptance_bytes);
    if (!text) return text.failure();
    const AcceptedJson object = parse_json_text(*text);
    if (!object.is_object()) refuse_acceptance("", "is not a JSON object");
    for (const auto& [name, value] : object.items()) {
      if (name != "accepted") refuse_acceptance(name, "unknown key");
    }
    if (!object.contains("accepted")) refuse_acceptance("accepted", "is missing");
    const AcceptedJson& list = object["accepted"];
    if (!list.is_array()) refuse_acceptance("accepted", "is not a list");
    std::vector<Acceptance> acceptances;
    for (std::size_t i = 0; i < list.size(); ++i)
      acceptances.push_back(read_acceptance(list[i], fmt::format("accepted[{}]", i)));
    return acceptances;
  } catch (const std::exception& error) {
    return Failure{Status::invalid_argument, file.string() + ": " + one_line(error.what()), {}};
  }
}

std::string_view to_string(AcceptanceUse::State state) {
  switch (state) {
    case AcceptanceUse::State::used:
      return "used";
    case AcceptanceUse::State::exceeded:
      return "exceeded";
    case AcceptanceUse::State::unused:
      return "unused";
    case AcceptanceUse::State::expired:
      return "expired";
  }
  return "unknown";
}

std::vector<AcceptanceUse> accept(BaselineComparison& comparison,
                                  const std::vector<Acceptance>& acceptances,
                                  const std::string& today) {
  using enum AcceptanceUse::State;
  std::vector<AcceptanceUse> uses;
  for (const Acceptance& acceptance : acceptances) {
    AcceptanceUse& use = uses.emplace_back(AcceptanceUse{acceptance});
    if (acceptance.until < today) use.state = expired;
    for (ResultChange& row : comparison.changes) {
      if (!is_of(acceptance, row)) continue;
      ++use.matches;
      if (use.state == expired || !row.is_regression() || row.broke) continue;
      if (row.change.low > 1 + acceptance.most) {
        use.state = exceeded;
        continue;
      }
      row.acceptance = {acceptance.reason, acceptance.until};
      ++use.rows;
      if (use.state == unused) use.state = used;
    }
  }
  std::stable_sort(comparison.changes.begin(), comparison.changes.end(),
                   [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  return uses;
}

std::string acceptance_text(const AcceptanceUse& use) {
  const auto& [acceptance, state, rows, matches] = use;
  const auto line = [&, &entry = acceptance](const std::string& what) {
    return fmt::format("accepted \"{}\" on \"{}\" {} ({})", entry.benchmark, entry.device, what,
                       entry.reason);
  };
  switch (state) {
    case AcceptanceUse::State::used:
      break;
    case AcceptanceUse::State::exceeded:
      return line(fmt::format("up to {:.3g} % is exceeded", 100 * acceptance.most));
    case AcceptanceUse::State::unused:
      return line(matches == 0 ? "is unused: no row matches" : "is unused: no row is slower");
    case AcceptanceUse::State::expired:
      return line("expired on " + acceptance.until);
  }
  return {};
}

}  // namespace greta::tuner
