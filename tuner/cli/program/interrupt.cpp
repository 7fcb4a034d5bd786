#include "tuner/cli/program/interrupt.hpp"

#include <signal.h>

#include <csignal>
#include <initializer_list>

namespace greta::tuner::cli {
namespace {

std::atomic<bool> requested{false};

void on_interrupt(int signal) {
  requested = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Signals that the caller ignores, e.g. with nohup, stay ignored.
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    std::signal(signal, on_interrupt);
  }
}

const std::atomic<bool>& stop_requested() {
  return requested;
}

}  // namespace greta::tuner::cli
