#include "runtime/device/system/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

namespace greta::device {
namespace {

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Opens a new file beside `path`, whose name it stores in `draft`. Returns its descriptor, or -1.
/// A name may be taken by a process that was killed, or by one of another container with the same
/// number.
int open_draft(const std::filesystem::path& path, std::string& draft) {
  static std::atomic<unsigned> counter{0};
  int file = -1;
  do {
    draft = fmt::format("{}.{}.{}.part", path.string(), ::getpid(), counter.fetch_add(1));
    file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EEXIST);
  return file;
}

/// Returns 0 or an errno.
int replace(const std::filesystem::path& path, std::string_view content) {
  std::string draft;
  const int file = open_draft(path, draft);
  if (file < 0) return errno;
  int error = write_all(file, content) ? 0 : errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(draft.c_str());
  return error;
}

}  // namespace

Result<void> replace_file(const std::filesystem::path& path, std::string_view content) {
  const int error = replace(path, content);
  if (error == 0) return {};
  return Failure{
      Status::io, fmt::format("{}: can't be written: {}", path.string(), std::strerror(error)), {}};
}

}  // namespace greta::device
