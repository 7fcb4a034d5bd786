#include "tuner/cli/checks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "db/values.hpp"
#include "runtime/device/input_file.hpp"
#include "runtime/device/sanitizing.hpp"
#include "tuner/cli/terminal.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner::cli {
Budget read_budget(const std::string& text) {
  auto budget = Budget::parse(text);
  if (!budget) throw command_error(budget.failure());
  return *std::move(budget);
}

std::uint64_t read_flush(const std::string& text) {
  if (text.empty()) return 0;
  std::size_t end = 0;
  double mebibytes = 0;
  try {
    mebibytes = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end != text.size() || !(mebibytes >= 1) || mebibytes > 65536) {
    throw CommandError(exit_usage,
                       fmt::format("--flush {}: must be MiB between 1 and 65536", text));
  }
  return static_cast<std::uint64_t>(mebibytes * 1024 * 1024);
}

std::string names_of_strategies() {
  std::string names;
  for (const auto& entry : strategies())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

void check_csv(const std::string& option, const std::filesystem::path& file) {
  if (file.empty()) return;
  const auto refuse = [&](std::string_view why) {
    throw CommandError(exit_usage, fmt::format("{} {}: {}", option, file.string(), why));
  };
  if (std::filesystem::exists(file)) {
    const auto text = read_file(file, most_csv_bytes);
    if (!text) throw CommandError(exit_usage, fmt::format("{} {}", option, text.failure().message));
    if (!text->empty() && !text->starts_with(csv_header())) refuse("exists and has other columns");
    if (access(file.c_str(), W_OK) != 0) refuse("can't be written");
    return;
  }
  auto folder = std::filesystem::absolute(file).parent_path();
  while (!std::filesystem::exists(folder)) folder = folder.parent_path();  // others are created
  if (!std::filesystem::is_directory(folder)) refuse(folder.string() + " is not a folder");
  if (access(folder.c_str(), W_OK) != 0) refuse("can't be written");
}

std::vector<Config> read_configs(const std::vector<std::string>& texts) {
  std::vector<Config> configs;
  for (const auto& text : texts) {
    std::istringstream words(text);  // a report may have wrapped it
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    try {
      configs.push_back(config_from_text(joined));
    } catch (const Error& error) {
      throw CommandError(exit_usage, std::string("--try: ") + error.what());
    }
  }
  return configs;
}

}  // namespace greta::tuner::cli
