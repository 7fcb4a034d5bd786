#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/system/temporary_folder.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A new folder that is removed with its contents at the end, also if a test made it read-only.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::filesystem::permissions(path(),
                                 std::filesystem::perms(0755));  // for children without root
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path(), std::filesystem::perms(0755), ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

  /// Returns the names of its entries, sorted, separated by spaces.
  std::string listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : " ") + name;
    return text;
  }

 private:
  device::TemporaryFolder folder_ = device::TemporaryFolder::make("greta-test").value();
};

}  // namespace greta::test
