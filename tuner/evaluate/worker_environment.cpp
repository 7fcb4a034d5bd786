#include "tuner/evaluate/worker_environment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/device/result.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace greta::tuner {
namespace {

/// A thread that runs what it is given, one after the other, and never ends.
class LastingThread {
 public:
  LastingThread() {
    std::thread([this] { serve(); }).detach();
  }
  void run(const std::function<void()>& work) {
    std::packaged_task<void()> task(work);
    auto done = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    added_.notify_one();
    done.get();
  }

 private:
  [[noreturn]] void serve() {
    for (std::unique_lock lock(mutex_);;) {
      added_.wait(lock, [this] { return !tasks_.empty(); });
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::packaged_task<void()>> tasks_;
};

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

WorkerErrors::WorkerErrors() : file_(memfd_create("errors of a worker", MFD_CLOEXEC)) {
  if (file_ < 0) throw Error("no memory for the messages of a worker process");
}

WorkerErrors::~WorkerErrors() {
  close(file_);
}

std::string WorkerErrors::text() const {
  // The worker shares this descriptor's file offset for its writes, so the offset must not change.
  std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(file_, 0, SEEK_CUR), 0)), '\0');
  const ssize_t n = pread(file_, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> environment;
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const bool replaced = std::any_of(
        variables.begin(), variables.end(),
        [&](const std::string& variable) { return name_of(variable) == name_of(*inherited); });
    if (!replaced) environment.emplace_back(*inherited);
  }
  environment.insert(environment.end(), variables.begin(), variables.end());
  return environment;
}

void on_lasting_thread(const std::function<void()>& work) {
  if (gettid() == getpid()) return work();        // the main thread lasts
  static auto* const thread = new LastingThread;  // never destroyed, as its thread uses it
  thread->run(work);
}

}  // namespace greta::tuner
