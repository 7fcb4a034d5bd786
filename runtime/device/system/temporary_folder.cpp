#include "runtime/device/system/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace greta::device {

Result<TemporaryFolder> TemporaryFolder::make(std::string_view prefix,
                                              const std::filesystem::path& parent) {
  std::error_code error;
  const auto below = parent.empty() ? std::filesystem::temp_directory_path(error) : parent;
  std::string name = (below / fmt::format("{}-XXXXXX", prefix)).string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return Failure{
        Status::io,
        fmt::format("{}: can't be made: {}", name, error ? error.message() : std::strerror(errno)),
        {}};
  }
  return TemporaryFolder(name);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace greta::device
