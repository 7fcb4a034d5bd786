#include "tuner/page/page.hpp"

#include <algorithm>

#include "runtime/device/text/strings.hpp"
#include "tuner/page/columns.hpp"

namespace greta::tuner {
namespace {

/// Marks the place of the data in the page.
constexpr std::string_view mark = "@GRETA_REPORT_DATA@";

std::string_view text_of(std::string_view path) {
  for (const auto& file : page_files())
    if (file.path == path) return file.text;
  return {};
}

}  // namespace

Result<std::string> page_html(const nlohmann::json& data) {
  const std::string_view page = text_of("report.html");
  if (page.empty()) {
    const std::string why = device::first_line(text_of("missing.txt"));
    return Failure{Status::unavailable, "this build has no report page: " + why, {}};
  }
  const auto at = page.find(mark);
  if (at == std::string_view::npos || page.find(mark, at + 1) != std::string_view::npos)
    return Failure{Status::unavailable, "the report page has no single place for data", {}};
  std::string html(page.substr(0, at));
  html += script_json(data);
  return html += page.substr(at + mark.size());
}

}  // namespace greta::tuner
