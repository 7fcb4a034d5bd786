#include "tuner/cli/bench/entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <tuple>

#include "tuner/bench/compare.hpp"
#include "tuner/cli/program/revision.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {
bool matches(const std::string& filter, const std::string& name) {
  const bool other = filter.starts_with('-');
  if (filter.empty()) return true;
  try {
    return std::regex_search(
               name, std::regex(filter.substr(other ? 1 : 0), std::regex::extended)) != other;
  } catch (const std::regex_error&) {
    throw CommandError(exit_usage, fmt::format("--filter {}: is not a regular expression", filter));
  }
}

bool same_computation(const Subject& a, const Subject& b) {
  return std::tie(a.problem, a.typed, a.backend, a.device) ==
         std::tie(b.problem, b.typed, b.backend, b.device);
}

std::vector<NamedResult> leave_out(const std::vector<MeasuredResult>& known,
                                   std::vector<GoogleRun::Entry>& entries) {
  std::vector<NamedResult> left_out;
  std::erase_if(entries, [&](const GoogleRun::Entry& entry) {
    Subject exported = entry.benchmark.subject;
    exported.greta_revision = revision();
    const auto found =
        std::find_if(known.rbegin(), known.rend(), [&](const MeasuredResult& result) {
          return !result.failure && result.us.median > 0 && result.subject == exported;
        });
    if (found == known.rend()) return false;
    left_out.push_back({entry.name, *found});
    return true;
  });
  return left_out;
}

std::vector<std::vector<GoogleRun::Entry>> in_groups(std::vector<GoogleRun::Entry> entries,
                                                     std::size_t about) {
  std::vector<std::vector<GoogleRun::Entry>> groups;
  for (auto& entry : entries) {
    const bool full = groups.empty() || (groups.back().size() >= about &&
                                         !same_computation(groups.back().back().benchmark.subject,
                                                           entry.benchmark.subject));
    if (full) groups.emplace_back();
    groups.back().push_back(std::move(entry));
  }
  return groups;
}

void add_speedups(std::vector<NamedResult>& rows) {
  constexpr double confidence = 0.95;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    MeasuredResult& winner = rows[i].result;
    const MeasuredResult& fallback = rows[i + 1].result;
    const bool pair = winner.subject.from_database() &&
                      same_computation(winner.subject, fallback.subject) &&
                      fallback.subject.origin == ResultOrigin::untuned && winner.us.median > 0 &&
                      fallback.us.median > 0;
    if (!pair) continue;
    winner.speedup = change_of(winner, fallback, confidence);
    if (!std::isfinite(winner.speedup.high)) winner.speedup.high = 0;  // unknown
  }
}

}  // namespace greta::tuner::cli
