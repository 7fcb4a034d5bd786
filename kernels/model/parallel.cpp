#include "kernels/model/parallel.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace greta::kernels {
namespace {

using Body = std::function<void(std::int64_t, std::int64_t)>;

/// One call of parallel_parts().
struct PartedWork {
  const Body& body;
  std::int64_t count, parts;
  std::int64_t begun = 0, ended = 0;
  std::exception_ptr error{};
};

/// Threads that wait for work, one per core. Starting threads anew for each check costs more than
/// most checks.
class PartThreads {
 public:
  explicit PartThreads(std::int64_t count) : count_(count) {
    for (std::int64_t i = 0; i < count; ++i) std::thread([this] { serve(); }).detach();
  }

  std::int64_t count() const { return count_; }
  /// Returns whether the threads are of another process, from which this one was forked.
  bool elsewhere() const { return process_ != getpid(); }
  /// Returns whether the calling thread is one of these.
  static bool inside() { return inside_; }

  void run(std::int64_t count, const Body& body) {
    PartedWork work{body, count, std::min(count_, count)};
    std::unique_lock lock(mutex_);
    waiting_.push_back(&work);
    begin_.notify_all();
    end_.wait(lock, [&] { return work.ended == work.parts; });
    lock.unlock();
    if (work.error) std::rethrow_exception(work.error);
  }

 private:
  void serve() {
    inside_ = true;
    std::unique_lock lock(mutex_);
    while (true) {
      begin_.wait(lock, [this] { return !waiting_.empty(); });
      PartedWork& work = *waiting_.front();
      const std::int64_t part = work.begun++;
      if (work.begun == work.parts) waiting_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        work.body(work.count * part / work.parts, work.count * (part + 1) / work.parts);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !work.error) work.error = error;
      if (++work.ended == work.parts) end_.notify_all();
    }
  }

  static thread_local bool inside_;
  const std::int64_t count_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  std::deque<PartedWork*> waiting_;  ///< with parts that no thread has begun
};

thread_local bool PartThreads::inside_ = false;

/// The threads live as long as the process, so the object is never destroyed.
PartThreads& part_threads() {
  static auto& threads =
      *new PartThreads(std::max<std::int64_t>(1, std::thread::hardware_concurrency()));
  return threads;
}

}  // namespace

std::int64_t parallel_threads() {
  return part_threads().count();
}

void parallel_parts(std::int64_t count, const Body& body) {
  if (count < 1) return;
  if (PartThreads::inside() || count == 1 || part_threads().count() == 1 ||
      part_threads().elsewhere()) {
    return body(0, count);
  }
  part_threads().run(count, body);
}

}  // namespace greta::kernels
