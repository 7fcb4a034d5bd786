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
  std::array<int, 2> output{-1, -1}, failed{-1, -1};
  if (pipe2(failed.data(), O_CLOEXEC) != 0) return not_started(command.front(), errno);
  if (capture && pipe2(output.data(), O_CLOEXEC) != 0) return not_started(command.front(), errno);
  const auto environment = environment_with(variables);
  const auto arguments = pointers(command), values = pointers(environment);
  const Forwarding forwarding;
  const pid_t child = fork();
  if (child < 0) return not_started(command.front(), errno);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (capture) dup2(output[1], STDOUT_FILENO);
    execve(arguments[0], arguments.data(), values.data());
    const int error = errno;
    [[maybe_unused]] const auto told = write(failed[1], &error, sizeof error);
    _exit(127);
  }
  child_process = child;
  close(failed[1]);
  int error = 0;
  const bool started = read(failed[0], &error, sizeof error) != sizeof error;
  close(failed[0]);
  ChildOutcome outcome;
  if (capture) {
    close(output[1]);
    outcome.output = read_all(output[0]);
    close(output[0]);
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
