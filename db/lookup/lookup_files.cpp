#include "db/lookup/lookup_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "runtime/device/result.hpp"
#include "runtime/device/system/module_paths.hpp"

/// Defined by programs that link the installed static libraries (cmake/installed_folder.cpp): a
/// file in PREFIX/share/greta.
extern "C" __attribute__((weak)) const char* greta_installed_folder();

namespace greta::db {
namespace {

namespace fs = std::filesystem;

/// Returns the first of the folders above `file` that has share/greta/tuned, up to `levels` above
/// the file's folder.
fs::path folder_above(const fs::path& file, int levels) {
  fs::path prefix = file.parent_path();
  for (int level = 0; level < levels; ++level) {
    prefix = prefix.parent_path();
    const fs::path folder = prefix / "share/greta/tuned";
    std::error_code error;
    if (fs::is_directory(folder, error)) return folder;
  }
  return {};
}

fs::path find_shipped_folder() {
  const fs::path running = device::program_file(), module = device::own_module_file();
  if (!module.empty() && module != running) {
    if (auto found = folder_above(module, 2); !found.empty()) return found;  // lib/x86_64-linux-gnu
  }
  if (auto found = folder_above(running, 1); !found.empty()) return found;
  return greta_installed_folder != nullptr ? greta_installed_folder() : fs::path();
}

/// Returns an architecture's folder: its name, in which characters that a path gives a meaning are
/// replaced.
std::string folder_of(std::string_view architecture) {
  std::string name(architecture.empty() ? "unknown" : architecture);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  return name.starts_with('.') ? "_" + name : name;
}

void add_databases(const fs::path& folder, std::vector<fs::path>& files) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".db") files.push_back(entry.path());
  }
}

}  // namespace

std::string_view to_string(DatabaseLevel level) {
  switch (level) {
    case DatabaseLevel::own:
      return "own";
    case DatabaseLevel::application:
      return "application";
    case DatabaseLevel::shipped:
      return "shipped";
  }
  return "unknown";
}

fs::path shipped_folder() {
  static const fs::path folder = find_shipped_folder();
  return folder;
}

std::vector<fs::path> shipped_files(const fs::path& folder,
                                    std::optional<std::string_view> architecture) {
  std::vector<fs::path> files;
  try {
    if (architecture) {
      const fs::path own = folder / folder_of(*architecture);
      if (fs::exists(own)) {
        add_databases(own, files);
      } else if (!fs::is_directory(folder)) {
        throw fs::filesystem_error("", std::make_error_code(std::errc::no_such_file_or_directory));
      }
    } else {
      for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.is_directory()) add_databases(entry.path(), files);
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(Failure{Status::io,
                        fmt::format("{}: its databases can't be listed: {}", folder.string(),
                                    error.code().message()),
                        {}});
  }
  std::sort(files.begin(), files.end());
  return files;
}

LookupFiles LookupFiles::none() {
  return {.own = {}, .application = {}, .shipped = {}};
}

}  // namespace greta::db
