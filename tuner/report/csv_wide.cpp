#include "tuner/report/csv_wide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "tuner/report/csv.hpp"

namespace greta::tuner {
namespace {

/// Columns of csv_line() whose content has columns of its own, or is a list.
constexpr std::string_view omitted[] = {"problem",    "attributes", "config",        "samples_us",
                                        "control_us", "cpu_us",     "cpu_control_us"};

/// Returns the fields of a row by column. Texts that need quotes have them.
std::vector<std::pair<std::string, std::string>> fields_of(const MeasuredResult& result) {
  std::vector<std::pair<std::string, std::string>> fields;
  const Subject& subject = result.subject;
  for (const auto& [name, field] : csv_fields(result)) {
    if (std::find(std::begin(omitted), std::end(omitted), name) == std::end(omitted))
      fields.emplace_back(name, field);
  }
  for (const auto& [name, value] : subject.problem.dims)
    fields.emplace_back("dim_" + name, fmt::format("{}", value));
  for (const auto& [name, value] : subject.problem.attributes)
    fields.emplace_back("attribute_" + name, csv_quoted(value));
  if (!subject.config) return fields;
  fields.emplace_back("variant", subject.config->variant);
  for (const auto& [name, value] : subject.config->values)
    fields.emplace_back("param_" + name, fmt::format("{}", value));
  return fields;
}

}  // namespace

std::string csv_wide(const std::vector<MeasuredResult>& results) {
  std::vector<std::string> columns;
  for (const auto& [name, field] : fields_of({})) columns.push_back(name);  // without results, too
  std::vector<std::map<std::string, std::string>> rows;
  for (const auto& result : results) {
    auto& row = rows.emplace_back();
    for (auto& [name, field] : fields_of(result)) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
      row.emplace(name, std::move(field));
    }
  }
  std::string text;
  const auto add_line = [&](const auto& field_of) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      text += (i > 0 ? "," : "") + field_of(columns[i]);
    text += "\n";
  };
  add_line([](const std::string& name) { return name; });
  for (const auto& row : rows) {
    add_line([&](const std::string& name) {
      const auto field = row.find(name);
      return field != row.end() ? field->second : std::string();
    });
  }
  return text;
}

}  // namespace greta::tuner
