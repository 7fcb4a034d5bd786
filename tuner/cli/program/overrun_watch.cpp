#include "tuner/cli/program/overrun_watch.hpp"

#include <unistd.h>

#include <utility>

#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

OverrunWatch::OverrunWatch(std::chrono::duration<double> most, std::function<void()> last_words)
    : thread_([this, most, last_words = std::move(last_words)] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, most, [this] { return ended_; })) return;
        last_words();
        _exit(exit_failed);
      }) {}

OverrunWatch::~OverrunWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

}  // namespace greta::tuner::cli
