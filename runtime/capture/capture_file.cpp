#include "runtime/capture/capture_file.hpp"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "runtime/capture/call_table.hpp"
#include "runtime/capture/message.hpp"
#include "runtime/capture/row.hpp"

namespace greta::capture {
namespace {

using Path = char[PATH_MAX];

Path pattern;  // absolute, with %p
Path wanted;   // with the number of the process
Path target;   // what this process wrote; empty: nothing yet
bool is_quiet, has_failed;
pid_t owner;  // the process whose calls are counted
/// What the table has.
struct Totals {
  std::uint64_t calls = 0, timed = 0;
  std::uint32_t kinds = 0;
};
Totals published;  // what the file has
std::atomic_flag is_writing = ATOMIC_FLAG_INIT;

/// Makes a path absolute. Returns whether it fits.
bool make_absolute(const char* path) {
  std::size_t length = 0;
  if (*path != '/' && getcwd(pattern, sizeof pattern - 1) != nullptr) {
    length = std::strlen(pattern);
    pattern[length++] = '/';
  }
  const std::size_t rest = std::strlen(path);
  if (length + rest >= sizeof pattern) return false;
  std::memcpy(pattern + length, path, rest + 1);
  return true;
}

/// Derives `wanted` from the pattern. Returns whether it fits.
bool expand() {
  std::size_t length = 0;
  constexpr std::size_t most = sizeof wanted - 64;  // what is appended below and to parts
  for (const char* from = pattern; *from != '\0'; ++from) {
    if (length >= most) return false;
    if (from[0] == '%' && from[1] == 'p') {
      length += static_cast<std::size_t>(std::snprintf(wanted + length, 16, "%d", owner));
      ++from;
    } else {
      wanted[length++] = *from;
    }
  }
  wanted[length] = '\0';
  struct stat status {};
  if (stat(wanted, &status) == 0 && S_ISDIR(status.st_mode)) {
    std::snprintf(wanted + length, 40, "/gemms.%d.jsonl", owner);
  }
  return true;
}

/// Puts the process's number before the extension of a path.
void add_number(const Path& path, Path& numbered) {
  const char* const slash = std::strrchr(path, '/');
  const char* dot = std::strrchr(path, '.');
  if (dot == nullptr || (slash != nullptr && dot <= slash + 1)) dot = path + std::strlen(path);
  const int length = std::snprintf(numbered, sizeof numbered, "%.*s.%d%s",
                                   static_cast<int>(dot - path), path, owner, dot);
  if (length >= static_cast<int>(sizeof numbered)) numbered[0] = '\0';
}

void fail(const char* path, int error) {
  has_failed = true;
  char why[256];
  std::snprintf(why, sizeof why, ": %s; GEMMs are not recorded", strerrordesc_np(error));
  report(path, why);
}

/// Writes all rows to a new file. Returns 0 or the error.
int write_rows(const Path& path) {
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  RowWriter out(descriptor);
  write_head(out, owner);
  const std::uint32_t count = entry_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    // Of some kinds, all calls may have failed.
    const bool is_ready = entry(i).ready.load(std::memory_order_acquire);
    if (is_ready && entry(i).count.load(std::memory_order_relaxed) > 0) write_row(out, entry(i));
  }
  int error = out.finish();
  if (close(descriptor) != 0 && error == 0) error = errno;
  if (error != 0) unlink(path);
  return error;
}

/// Gives a new file its name, which no other file has yet. Returns 0 or the error.
int claim(const Path& part) {
  Path numbered;
  add_number(wanted, numbered);
  for (const char* const name : {wanted, numbered}) {
    // Without hard links, as on some network file systems, the name is checked only.
    if (link(part, name) == 0) {
      unlink(part);
    } else if (errno == EEXIST) {
      continue;
    } else if (access(name, F_OK) == 0) {
      continue;
    } else if (rename(part, name) != 0) {
      return errno;
    }
    std::snprintf(target, sizeof target, "%s", name);
    return 0;
  }
  return EEXIST;
}

Totals totals() {
  Totals sum{.calls = uncounted_calls()};
  for (std::uint32_t i = 0, count = entry_count(); i < count; ++i) {
    const std::uint64_t calls = entry(i).count.load(std::memory_order_relaxed);
    sum.calls += calls;
    sum.timed += entry(i).timed.load(std::memory_order_relaxed);
    sum.kinds += calls > 0 ? 1 : 0;
  }
  return sum;
}

void write_file() {
  Path part;
  const int length = std::snprintf(part, sizeof part, "%s.%d.part", wanted, owner);
  if (length >= static_cast<int>(sizeof part)) return fail(wanted, ENAMETOOLONG);
  if (const int error = write_rows(part)) return fail(wanted, error);
  const int error = target[0] == '\0' ? claim(part) : rename(part, target) != 0 ? errno : 0;
  if (error == 0) return;
  unlink(part);
  fail(wanted, error);
}

void report_last() {
  if (is_quiet || has_failed || target[0] == '\0') return;
  char what[128];
  std::snprintf(what, sizeof what, ": %llu calls of %u different GEMMs",
                static_cast<unsigned long long>(published.calls), published.kinds);
  report(target, what);
  if (uncounted_calls() > 0) report(target, ": is not complete, as there were too many shapes");
}

}  // namespace

void set_file(const char* path, bool quiet) {
  owner = getpid();
  is_quiet = quiet;
  if (!make_absolute(path) || !expand()) fail(path, ENAMETOOLONG);
}

void publish(bool last) {
  // A child of vfork or of a raw clone shares or copies the table, but its calls are not there.
  if (owner != getpid()) return;
  for (int turn = 0; is_writing.test_and_set(std::memory_order_acquire); ++turn) {
    if (turn == 2000) return;
    const timespec moment{0, 1000000};
    nanosleep(&moment, nullptr);
  }
  const Totals now = totals();
  const bool is_new = now.calls != published.calls || now.timed != published.timed;
  if (is_new && now.calls > 0 && !has_failed) {
    published = now;
    write_file();
  }
  if (last) report_last();
  is_writing.clear(std::memory_order_release);
}

void forget_file() {
  clear_calls();
  owner = getpid();
  target[0] = '\0';
  published = {};
  is_writing.clear();
  if (!expand()) fail(pattern, ENAMETOOLONG);
}

}  // namespace greta::capture
