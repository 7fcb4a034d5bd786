#include "runtime/device/hip/host/faults.hpp"

#include <signal.h>

#include <array>
#include <mutex>

#include "runtime/device/hip/host/cluster_runner.hpp"
#include "runtime/device/hip/host/sanitizer.hpp"

namespace greta::device::hip::host {

// This signal is ignored unless a handler is set, so a late one does no harm.
const int stop_signal = SIGURG;

namespace {

constexpr std::array faults{SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::size_t signal_stack_bytes = std::size_t{64} << 10;

thread_local ClusterRunner* running = nullptr;

struct sigaction& earlier(int signal) {
  static std::array<struct sigaction, 65> all{};
  return all[static_cast<std::size_t>(signal)];
}

/// Passes a signal to the handler that was set before.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = earlier(signal);
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler == SIG_IGN || (signal == stop_signal && before.sa_handler == SIG_DFL)) {
    return;
  }
  if (before.sa_handler != SIG_DFL) return before.sa_handler(signal);
  // The cause of the signal, the instruction or the rest of abort(), raises it again and ends the
  // process. A signal from another process must be raised explicitly.
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) raise(signal);
}

void handle(int signal, siginfo_t* info, void* context) {
  if (running != nullptr && running->interrupt(signal, info->si_addr)) return;
  pass_on(signal, info, context);
}

/// Sanitizers end the process with SIGABRT after they have reported the error.
void handle_abort(int signal, siginfo_t* info, void* context) {
  if (running != nullptr) running->report();
  pass_on(signal, info, context);
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = &handle;
  // A handler may never return, so its signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  sigaction(stop_signal, &action, &earlier(stop_signal));
  if (address_sanitizer().loaded()) {
    action.sa_sigaction = &handle_abort;
    sigaction(SIGABRT, &action, &earlier(SIGABRT));
    return;
  }
  for (const int fault : faults) sigaction(fault, &action, &earlier(fault));
}

}  // namespace

FaultGuard::FaultGuard(ClusterRunner& runner)
    : stack_(std::make_unique<std::byte[]>(signal_stack_bytes)) {
  static std::once_flag installed;
  std::call_once(installed, install);
  stack_t stack{};
  stack.ss_sp = stack_.get();
  stack.ss_size = signal_stack_bytes;
  sigaltstack(&stack, nullptr);
  running = &runner;
}

FaultGuard::~FaultGuard() {
  running = nullptr;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace greta::device::hip::host
