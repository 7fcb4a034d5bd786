#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/device/compile/embedded_file.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// Returns the built page, "report.html" and the licences of what is in it; nothing in a build
/// without it. A file "missing.txt" says why.
const std::vector<EmbeddedFile>& page_files();

/// Returns the page with data (page_data()) as one HTML document that loads nothing. Fails with
/// `unavailable` and the reason if this build has no page.
Result<std::string> page_html(const nlohmann::json& data);

}  // namespace greta::tuner
