#include "tuner/cli/bench/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <tuple>

#include "tuner/cli/tool.hpp"

namespace greta::tuner::cli {
namespace {

auto computation(const CsvRow& row) {
  return std::tie(row.op, row.dtype, row.out_dtype, row.problem, row.attributes, row.backend,
                  row.device);
}

auto circumstances(const CsvRow& row) {
  return std::tie(row.config, row.origin, row.cache, row.driver, row.compiler, row.greta_version);
}

}  // namespace

bool matches(const std::string& filter, const std::string& name) {
  const bool other = filter.starts_with('-');
  if (filter.empty()) return true;
  try {
    return std::regex_search(
               name, std::regex(filter.substr(other ? 1 : 0), std::regex::extended)) != other;
  } catch (const std::regex_error&) {
    throw CommandError(exit_usage, fmt::format("--filter {}: is no regular expression", filter));
  }
}

bool same_computation(const GoogleRun::Entry& a, const GoogleRun::Entry& b) {
  return computation(a.benchmark.row) == computation(b.benchmark.row);
}

std::size_t leave_out(const std::vector<CsvRow>& rows, std::vector<GoogleRun::Entry>& entries) {
  return std::erase_if(entries, [&](const GoogleRun::Entry& entry) {
    return std::any_of(rows.begin(), rows.end(), [&](const CsvRow& row) {
      return row.status == "ok" && row.us > 0 &&
             computation(row) == computation(entry.benchmark.row) &&
             circumstances(row) == circumstances(entry.benchmark.row);
    });
  });
}

std::vector<std::vector<GoogleRun::Entry>> in_groups(std::vector<GoogleRun::Entry> entries,
                                                     std::size_t about) {
  std::vector<std::vector<GoogleRun::Entry>> groups;
  for (auto& entry : entries) {
    const bool full = groups.empty() || (groups.back().size() >= about &&
                                         !same_computation(groups.back().back(), entry));
    if (full) groups.emplace_back();
    groups.back().push_back(std::move(entry));
  }
  return groups;
}

}  // namespace greta::tuner::cli
