#include "runtime/capture/process.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "runtime/capture/capture_file.hpp"
#include "runtime/capture/event_timer.hpp"
#include "runtime/capture/message.hpp"
#include "runtime/capture/recorder.hpp"

namespace greta::capture {
namespace {

constexpr double most_interval_s = 86400;

pthread_once_t once = PTHREAD_ONCE_INIT;
std::atomic<bool> has_writer;
double interval_s = 10;

void sleep_for(double seconds) {
  timespec left{static_cast<time_t>(seconds), 0};
  left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

/// Writes soon at first, so that what is killed early is not lost.
void* write_at_intervals(void*) {
  prctl(PR_SET_NAME, "greta-capture");
  for (double wait = interval_s < 1 ? interval_s : 1;;) {
    sleep_for(wait);
    read_times();
    publish(false);
    wait = 2 * wait < interval_s ? 2 * wait : interval_s;
  }
}

void in_child() {
  has_writer.store(false);
  forget_lock();
  forget_times();
  forget_file();
}

void at_end() {
  publish(true);
}

/// Where nothing has been destroyed yet, and the program is not in a signal handler.
void at_quick_end() {
  read_times();
  publish(true);
}

void read_interval() {
  const char* const text = getenv("GRETA_CAPTURE_INTERVAL");
  if (text == nullptr || *text == '\0') return;
  char* end = nullptr;
  const double seconds = strtod(text, &end);
  if (*end == '\0' && seconds > 0 && seconds <= most_interval_s) {
    interval_s = seconds;
  } else {
    report("GRETA_CAPTURE_INTERVAL", " must be a number of seconds above 0; it is 10");
  }
}

void start() {
  const char* const file = getenv("GRETA_CAPTURE");
  const char* const quiet = getenv("GRETA_CAPTURE_QUIET");
  const char* const times = getenv("GRETA_CAPTURE_TIMES");
  if (times != nullptr && *times == '0') set_untimed();
  read_interval();
  set_file(file != nullptr && *file != '\0' ? file : "greta-gemms.jsonl",
           quiet != nullptr && *quiet != '\0');
  for (std::uint16_t i = 0; i < symbol_count(); ++i) symbols()[i]->set_index(i);
  pthread_atfork(nullptr, nullptr, in_child);
  at_quick_exit(at_quick_end);
}

__attribute__((constructor)) void at_start() {
  start_once();
}
__attribute__((destructor)) void at_exit() {
  at_end();
}

}  // namespace

void start_once() {
  pthread_once(&once, start);
}

void start_writer() {
  if (has_writer.exchange(true)) return;
  // None of the application's signals are delivered to this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, write_at_intervals, nullptr) != 0) {
    has_writer.store(false);  // the file is written at the end
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

namespace {

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(next_dlsym(reinterpret_cast<void*>(-1L), name));  // RTLD_NEXT
}

/// The number of words of a variadic call up to the null pointer, after `first`.
std::size_t count_words(const char* first, va_list& rest) {
  va_list again;
  va_copy(again, rest);
  std::size_t count = 0;
  for (const char* word = first; word != nullptr; word = va_arg(again, const char*)) ++count;
  va_end(again);
  return count;
}

/// Fills a list of `count` words and the null pointer. Afterwards, `rest` is after that.
char** list_words(char** list, std::size_t count, const char* first, va_list& rest) {
  list[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i <= count; ++i) list[i] = va_arg(rest, char*);
  return list;
}

/// The words of a variadic function as a list on its stack.
#define GRETA_WORDS(list, first, rest)                \
  const std::size_t count = count_words(first, rest); \
  char** const list = list_words(                     \
      static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))), count, first, rest)

void publish_now() {
  read_times();
  publish(false);
}

/// A signal handler may end the process while a thread is in the driver, which must not be called
/// then: times are those that were read before.
[[noreturn]] void end_now(int status) {
  at_end();
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace
}  // namespace greta::capture

// What ends a process, or its program, without a call of destructors.
using namespace greta::capture;

GRETA_CAPTURED void _exit(int status) {
  end_now(status);
}
GRETA_CAPTURED void _Exit(int status) noexcept {
  end_now(status);
}

GRETA_CAPTURED int execve(const char* path, char* const words[],
                          char* const environment[]) noexcept {
  publish_now();
  return next<int (*)(const char*, char* const*, char* const*)>("execve")(path, words, environment);
}
GRETA_CAPTURED int execv(const char* path, char* const words[]) noexcept {
  publish_now();
  return next<int (*)(const char*, char* const*)>("execv")(path, words);
}
GRETA_CAPTURED int execvp(const char* file, char* const words[]) noexcept {
  publish_now();
  return next<int (*)(const char*, char* const*)>("execvp")(file, words);
}
GRETA_CAPTURED int execvpe(const char* file, char* const words[],
                           char* const environment[]) noexcept {
  publish_now();
  return next<int (*)(const char*, char* const*, char* const*)>("execvpe")(file, words,
                                                                           environment);
}
GRETA_CAPTURED int execl(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  GRETA_WORDS(list, first, rest);
  va_end(rest);
  return execv(path, list);
}
GRETA_CAPTURED int execlp(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  GRETA_WORDS(list, first, rest);
  va_end(rest);
  return execvp(file, list);
}
GRETA_CAPTURED int execle(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  GRETA_WORDS(list, first, rest);
  char* const* const environment = va_arg(rest, char* const*);
  va_end(rest);
  return execve(path, list, environment);
}
