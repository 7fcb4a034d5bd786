#include "db/damage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/device/text/printable.hpp"

namespace greta::db {

std::string DamagedRow::text() const {
  std::string line = fmt::format("{}: the row of {}", table, key);
  if (!problem.empty() && !key.starts_with(problem)) line += ", " + problem;
  if (!device.empty()) line += " on " + device;
  line += " " + cause;
  return one_line(line);
}

std::vector<std::string> damage_lines(const std::vector<DamagedRow>& rows) {
  constexpr std::size_t most = 20;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(rows.size(), most); ++i) lines.push_back(rows[i].text());
  if (rows.size() > most) lines.push_back(fmt::format("and {} more rows", rows.size() - most));
  return lines;
}

}  // namespace greta::db
