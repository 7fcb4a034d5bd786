#include "tuner/cli/program/paths.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "db/lookup/lookup_files.hpp"
#include "runtime/device/system/temporary_folder.hpp"
#include "runtime/device/text/strings.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {
namespace {

std::filesystem::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";  // XDG ignores relative paths
}

std::filesystem::path home() {
  if (auto path = from_environment("HOME"); !path.empty()) return path;
  const passwd* user = getpwuid(geteuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/";
}

std::filesystem::path xdg(const char* variable, const char* below_home) {
  const auto set = from_environment(variable);
  return (set.empty() ? home() / below_home : set) / "greta";
}

/// Returns whether files can be created in a folder, by creating one that is removed: permissions
/// don't tell of file systems such as /proc.
bool can_create_in(const std::filesystem::path& folder) {
  return static_cast<bool>(device::TemporaryFolder::make(".greta", folder));
}

}  // namespace

std::filesystem::path default_cache_directory() {
  return xdg("XDG_CACHE_HOME", ".cache");
}

std::filesystem::path default_database() {
  return xdg("XDG_DATA_HOME", ".local/share") / "tuned.db";
}

std::filesystem::path folder_of_kernels() {
  return xdg("XDG_CONFIG_HOME", ".config") / "kernels";
}

std::filesystem::path folder_of_shipped() {
  const char* set = std::getenv("GRETA_SHIPPED");
  return set != nullptr && set[0] != '\0' ? set : shipped_folder();
}

std::vector<std::string> home_directories() {
  const passwd* user = getpwuid(geteuid());
  return {home().string(), user != nullptr && user->pw_dir != nullptr ? user->pw_dir : ""};
}

std::string user_name() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr && user->pw_name != nullptr ? user->pw_name : "";
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || value[0] == '\0') continue;  // the next one decides
    const std::string charset = device::lowercase(value);
    return charset.find("utf-8") != std::string::npos || charset.find("utf8") != std::string::npos;
  }
  return false;
}

void check_folder(const std::string& option, const std::filesystem::path& file) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  const auto refuse = [&](const std::string& why) {
    throw CommandError(exit_usage, fmt::format("{} {}: {}", option, file.string(), why));
  };
  if (!std::filesystem::exists(folder)) refuse("there is no folder " + folder.string());
  if (!std::filesystem::is_directory(folder)) refuse(folder.string() + " is not a folder");
  if (!can_create_in(folder)) refuse("can't be written");
}

}  // namespace greta::tuner::cli
