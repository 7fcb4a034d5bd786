#include "db/sqlite/run_locks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace greta::db {
namespace {

/// Sets a lock (F_WRLCK, F_UNLCK) on bytes of an open file; 0 bytes: all. Returns whether it could.
/// Locks of this kind belong to the open file, not to the process, so that closing another handle
/// of the file does not release them.
bool set_lock(int descriptor, short type, std::int64_t first, std::int64_t bytes) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = bytes;
  return fcntl(descriptor, F_OFD_SETLK, &range) == 0;
}

bool is_the_file(int descriptor, const std::filesystem::path& path) {
  struct stat open {
  }, named{};
  return fstat(descriptor, &open) == 0 && stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

RunLocks::RunLocks(const std::filesystem::path& database) : file_(database.string() + "-runs") {}

RunLocks::RunLocks(RunLocks&& other) noexcept
    : file_(std::move(other.file_)),
      held_(std::exchange(other.held_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLocks::~RunLocks() {
  close();
}

bool RunLocks::open() {
  if (descriptor_ < 0)
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  return descriptor_ >= 0;
}

// The last one removes the file: nobody else has a lock on any byte of it. Who opened it in the
// meantime finds in take() that it has no name any more.
void RunLocks::close() {
  if (descriptor_ < 0) return;
  if (set_lock(descriptor_, F_WRLCK, 0, 0) && is_the_file(descriptor_, file_))
    ::unlink(file_.c_str());
  ::close(std::exchange(descriptor_, -1));
}

bool RunLocks::take(std::int64_t run) {
  constexpr int most_attempts = 100;  // each fails if another process removes the file just then
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    if (!open()) return true;
    if (!set_lock(descriptor_, F_WRLCK, run, 1)) {
      const bool held = errno == EACCES || errno == EAGAIN;
      if (held_.empty()) close();
      return !held;
    }
    if (is_the_file(descriptor_, file_)) {
      held_.insert(run);
      return true;
    }
    if (!held_.empty()) return true;  // the user removed it
    ::close(std::exchange(descriptor_, -1));
  }
  return true;
}

void RunLocks::release(std::int64_t run) {
  if (held_.erase(run) == 0) return;
  set_lock(descriptor_, F_UNLCK, run, 1);
  if (held_.empty()) close();
}

}  // namespace greta::db
