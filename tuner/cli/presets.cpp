#include "tuner/cli/presets.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "tuner/cli/tool.hpp"

namespace greta::tuner::cli {
namespace {

std::filesystem::path find_preset(const std::string& wanted) {
  // A folder may have a preset's name by accident.
  std::error_code ignored;
  const auto there = std::filesystem::status(wanted, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_directory(there)) return wanted;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto installed = program.parent_path().parent_path() / "share/greta/presets";
  for (const auto& folder : {installed, std::filesystem::path("presets")}) {
    const auto file = folder / (wanted + ".json");
    if (std::filesystem::is_regular_file(file)) return file;
  }
  throw CommandError(exit_usage, fmt::format("preset {}: no such file, and no preset of that name "
                                             "in {} or presets/",
                                             wanted, installed.string()));
}

}  // namespace

Preset load_preset(const std::string& wanted) {
  auto preset = read_preset(find_preset(wanted), Catalog::built_in());
  if (!preset) throw CommandError(exit_usage, preset.failure().message);
  return *std::move(preset);
}

}  // namespace greta::tuner::cli
