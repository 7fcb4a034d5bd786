#include "runtime/device/system/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace greta::device {
namespace {

using Clock = std::chrono::steady_clock;

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  int get() const { return value_; }
  void reset(int value = -1) {
    if (value_ >= 0) close(value_);
    value_ = value;
  }

 private:
  int value_ = -1;
};

struct Pipe {
  Descriptor read, write;

  bool open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
};

/// Pipes to and from the child; `failed` carries errno when the program can't be executed.
struct Pipes {
  Pipe input, output, errors, failed;
};

// Runs in the child, which shares the parent's memory until it runs the program: it may only make
// system calls.
[[noreturn]] void become(char* const* argv, const Pipes& pipes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  dup2(pipes.input.read.get(), STDIN_FILENO);
  dup2(pipes.output.write.get(), STDOUT_FILENO);
  dup2(pipes.errors.write.get(), STDERR_FILENO);
  std::signal(SIGPIPE, SIG_DFL);
  execvp(argv[0], argv);
  const int error = errno;
  [[maybe_unused]] const auto told = write(pipes.failed.write.get(), &error, sizeof error);
  _exit(127);
}

/// Appends the available bytes. Returns false at the end of the stream.
bool drain(Descriptor& from, std::string& to) {
  std::array<char, 65536> block;
  const ssize_t n = read(from.get(), block.data(), block.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  to.append(block.data(), static_cast<std::size_t>(n));
  return n > 0;
}

/// Writes the rest of `input`. Returns false when nothing more can or need be written.
bool feed(Descriptor& to, const std::string& input, std::size_t& written) {
  const ssize_t n = write(to.get(), input.data() + written, input.size() - written);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  written += static_cast<std::size_t>(n);
  return written < input.size();
}

/// Until when a child may run.
struct Limit {
  Clock::time_point deadline;
  const std::atomic<bool>* stop = nullptr;  // may be null

  bool stopped() const { return stop != nullptr && *stop; }
  bool reached() const { return stopped() || Clock::now() >= deadline; }
  /// Milliseconds to wait before reached() is asked again.
  int pause_ms() const {
    const long long longest = stop != nullptr ? 100 : 60'000;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, longest));
  }
};

/// Feeds the child and reads from it until it has closed its outputs. Returns false when the limit
/// is reached.
bool converse(Pipes& pipes, const std::string& input, const Limit& limit,
              const OutputReader& reader, ProcessOutcome& outcome) {
  std::size_t written = 0;
  Descriptor &in = pipes.input.write, &out = pipes.output.read, &err = pipes.errors.read;
  fcntl(in.get(), F_SETFL, O_NONBLOCK);
  if (input.empty()) in.reset();
  while (out.get() >= 0 || err.get() >= 0) {
    if (limit.reached()) return false;
    // poll() ignores negative descriptors.
    std::array<pollfd, 3> waits{
        {{in.get(), POLLOUT, 0}, {out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), limit.pause_ms()) < 0) continue;
    if (waits[0].revents != 0 && !feed(in, input, written)) in.reset();
    if (waits[1].revents != 0 && !drain(out, outcome.output)) out.reset();
    if (waits[2].revents != 0 && !drain(err, outcome.errors)) err.reset();
    if (reader) reader(outcome.output);
  }
  return true;
}

/// Waits for a child that may keep running after it has closed its outputs. Returns -1 when the
/// limit is reached.
int wait_for(pid_t child, const Limit& limit) {
  int status = 0;
  for (int pause_us = 50;; pause_us = std::min(2 * pause_us, 10000)) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;
    if (limit.reached()) return -1;
    usleep(static_cast<useconds_t>(pause_us));
  }
}

}  // namespace

std::string signal_text(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

Status ProcessOutcome::failure() const {
  if (stopped) return Status::interrupted;
  return timed_out ? Status::timeout : Status::crash;
}

std::string ProcessOutcome::how_it_ended(std::chrono::nanoseconds deadline) const {
  if (stopped) return "was interrupted";
  if (timed_out) {
    return fmt::format("was killed after {:g} s", std::chrono::duration<double>(deadline).count());
  }
  if (signal != 0) return "was killed by " + signal_text(signal);
  return fmt::format("exited with {}", exit_code);
}

std::string ProcessOutcome::last_error_line() const {
  const auto end = errors.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const auto before = errors.rfind('\n', end);  // npos + 1 is 0
  return errors.substr(before + 1, end - before);
}

Result<ProcessOutcome> run_process(const std::vector<std::string>& command,
                                   const std::string& input, std::chrono::nanoseconds deadline,
                                   const std::atomic<bool>* stop, const OutputReader& reader) {
  std::signal(SIGPIPE, SIG_IGN);  // a program that doesn't read its input must not end this process
  const Limit limit{Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline), stop};
  const auto refuse = [&](int error) {
    return Failure{Status::unavailable,
                   fmt::format("can't start {}: {}", command.front(), std::strerror(error)),
                   {}};
  };
  Pipes pipes;
  for (Pipe* pipe : {&pipes.input, &pipes.output, &pipes.errors, &pipes.failed}) {
    if (!pipe->open()) return refuse(errno);
  }
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  // A copy of a large process's page tables takes longer than many programs run.
  const pid_t child = vfork();
  if (child < 0) return refuse(errno);
  if (child == 0) become(argv.data(), pipes);
  setpgid(child, child);  // the child calls it as well; either may come first
  pipes.input.read.reset();
  for (Pipe* pipe : {&pipes.output, &pipes.errors, &pipes.failed}) pipe->write.reset();

  int error = 0;
  if (read(pipes.failed.read.get(), &error, sizeof error) == sizeof error) {
    waitpid(child, nullptr, 0);
    return refuse(error);
  }
  ProcessOutcome outcome;
  int status = converse(pipes, input, limit, reader, outcome) ? wait_for(child, limit) : -1;
  if (status < 0) {
    outcome.stopped = limit.stopped();
    outcome.timed_out = !outcome.stopped;
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
  }
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  outcome.exit_code = outcome.signal != 0 ? 128 + outcome.signal : WEXITSTATUS(status);
  return outcome;
}

}  // namespace greta::device
