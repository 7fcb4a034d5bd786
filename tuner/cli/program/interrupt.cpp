#include "tuner/cli/program/interrupt.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <string>

#include "tuner/cli/program/tool.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

constexpr timeval answer_after{.tv_sec = 0, .tv_usec = 850'000};
timeval end_after{};  // set before the handlers are installed

std::atomic<bool> requested{false};
std::atomic<bool> answered{false};
std::atomic<bool> ends_late{true};
std::atomic<bool> ends_at_once{false};
// Built before the handlers are installed, which may only read them.
std::string end_line, wait_line;

void set_timer(const timeval& after) {
  const itimerval once{.it_interval = {}, .it_value = after};
  static_cast<void>(setitimer(ITIMER_REAL, &once, nullptr));
}

void print_line(const std::string& line) {
  static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
  leave_below();
}

[[noreturn]] void end_now() {
  print_line(end_line);
  _exit(exit_failed);
}

void on_interrupt(int signal) {
  if (ends_at_once) end_now();
  requested = true;
  std::signal(signal, SIG_DFL);
  if (!answered) set_timer(answer_after);
}

void on_timer(int /*signal*/) {
  const int error = errno;
  static bool waited = false;
  if (waited) end_now();
  waited = true;
  print_line(wait_line);
  if (ends_late) set_timer(end_after);
  errno = error;
}

}  // namespace

void catch_interrupts(std::chrono::seconds patience) {
  end_after.tv_sec = patience.count();
  const std::string interrupted = std::string(program_invocation_short_name) + ": interrupted; ";
  end_line = interrupted + "what was stored before is kept\n";
  wait_line = interrupted + "what runs ends first; a second interrupt ends at once\n";
  std::signal(SIGALRM, on_timer);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Signals that the caller ignores, e.g. with nohup, stay ignored.
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    std::signal(signal, on_interrupt);
  }
}

void keep_results_after_interrupt() {
  ends_late = false;
}

EndsAtOnce::EndsAtOnce() {
  ends_at_once = true;
  if (requested) end_now();
}

EndsAtOnce::~EndsAtOnce() {
  ends_at_once = false;
}

void answer_interrupt() {
  if (!requested) return;
  answered = true;
  set_timer({});
}

const std::atomic<bool>& stop_requested() {
  return requested;
}

}  // namespace greta::tuner::cli
