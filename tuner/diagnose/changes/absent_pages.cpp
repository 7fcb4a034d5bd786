#include "tuner/diagnose/changes/absent_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace greta::tuner {
namespace {

constexpr std::size_t most_pages = 4096, page_bytes = 4096;

std::array<void*, most_pages> supplied;
std::atomic<std::size_t> count{0};
struct sigaction handler_before {};

/// Returns whether the access may be tried again.
bool supply_page(const siginfo_t& info) {
  if (info.si_code != SEGV_MAPERR) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr) / page_bytes * page_bytes;
  void* const wanted = reinterpret_cast<void*>(address);
  void* const page = mmap(wanted, page_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (page == MAP_FAILED) return errno == EEXIST;  // another thread was first
  const std::size_t place = count++;
  if (page == wanted && place < most_pages) {
    supplied[place] = page;
    return true;
  }
  munmap(page, page_bytes);
  return false;
}

void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool again = supply_page(*info);
  errno = error;
  if (again) return;
  if ((handler_before.sa_flags & SA_SIGINFO) != 0)
    return handler_before.sa_sigaction(signal, info, context);
  sigaction(signal, &handler_before, nullptr);  // which gets the signal next
}

}  // namespace

void AbsentPages::supply() {
  static std::once_flag once;  // the handler before is another one
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &handler_before);
  });
}

bool AbsentPages::take_away() {
  const std::size_t pages = count.exchange(0);
  for (std::size_t i = 0; i < std::min(pages, most_pages); ++i) munmap(supplied[i], page_bytes);
  return pages > 0;
}

}  // namespace greta::tuner
