#include "tuner/cli/program/paths.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

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

}  // namespace

std::filesystem::path default_cache_directory() {
  return xdg("XDG_CACHE_HOME", ".cache");
}

std::filesystem::path default_database() {
  return xdg("XDG_DATA_HOME", ".local/share") / "tuned.db";
}

std::vector<std::string> home_directories() {
  const passwd* user = getpwuid(geteuid());
  return {home().string(), user != nullptr && user->pw_dir != nullptr ? user->pw_dir : ""};
}

std::string user_name() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr && user->pw_name != nullptr ? user->pw_name : "";
}

}  // namespace greta::tuner::cli
