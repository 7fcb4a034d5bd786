#include "tuner/validate/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace greta::tuner {
namespace {

constexpr std::array forwarded{SIGINT, SIGTERM, SIGHUP};

std::atomic<pid_t> child_process{0};

/// Passes on what another process sent; the terminal sends its signals to all processes itself.
void forward(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const pid_t child = child_process;
  if (info->si_code <= 0 && child > 0) kill(child, signal);
  errno = error;
}

/// Forwards signals during its lifetime. Ignored ones stay ignored.
class Forwarding {
 public:
  Forwarding() {
    struct sigaction action {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < forwarded.size(); ++i) {
      sigaction(forwarded[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(forwarded[i], &action, nullptr);
    }
  }
  ~Forwarding() {
    child_process = 0;
    for (std::size_t i = 0; i < forwarded.size(); ++i) {
      sigaction(forwarded[i], &before_[i], nullptr);
    }
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

 private:
  std::array<struct sigaction, forwarded.size()> before_{};
};

/// Keeps the forwarded signals waiting during its lifetime.
class Blocked {
 public:
  Blocked() {
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : forwarded) sigaddset(&all, signal);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~Blocked() { restore(); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  void restore() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// The two ends of a pipe, which are closed with it.
class Pipe {
 public:
  Pipe() = default;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool open() { return pipe2(ends_.data(), O_CLOEXEC) == 0; }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() { close_end(1); }

 private:
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

/// Replaces this process, a child, by the command.
[[noreturn]] void execute(const std::vector<char*>& arguments, const std::vector<char*>& values,
                          int output, int failed) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (output >= 0) dup2(output, STDOUT_FILENO);
  execve(arguments[0], arguments.data(), values.data());
  const int error = errno;
  [[maybe_unused]] const auto told = write(failed, &error, sizeof error);
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Returns this process's environment with the variables.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> list;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : variables) replaced = replaced || text.starts_with(name + "=");
    if (!replaced) list.emplace_back(text);
  }
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 65536> block;
  while (true) {
    const ssize_t count = read(descriptor, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
}

Failure not_started(const std::string& program, int error) {
  return {
      Status::unavailable, fmt::format("{} can't be started: {}", program, strerror(error)), {}};
}

}  // namespace

Result<ChildOutcome> run_child(const std::vector<std::string>& command,
                               const std::vector<std::pair<std::string, std::string>>& variables,
                               bool capture) {
  Pipe output, failed;
  if (!failed.open()) return not_started(command.front(), errno);
  if (capture && !output.open()) return not_started(command.front(), errno);
  const auto environment = environment_with(variables);
  const auto arguments = pointers(command), values = pointers(environment);
  const Forwarding forwarding;
  pid_t child = 0;
  {
    // A signal that arrives before the child is known waits until it can be passed on.
    const Blocked blocked;
    child = fork();
    if (child < 0) return not_started(command.front(), errno);
    if (child == 0) {
      blocked.restore();
      execute(arguments, values, output.writing(), failed.writing());
    }
    child_process = child;
  }
  failed.close_writing();
  int error = 0;
  const bool started = read(failed.reading(), &error, sizeof error) != sizeof error;
  ChildOutcome outcome;
  if (capture) {
    output.close_writing();
    outcome.output = read_all(output.reading());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!started) return not_started(command.front(), error);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.exit_code = WIFSIGNALED(status) ? 128 + outcome.signal : WEXITSTATUS(status);
  return outcome;
}

}  // namespace greta::tuner
