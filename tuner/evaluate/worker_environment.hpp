#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A file in memory that receives the standard error of a worker process, including reports of
/// sanitizers.
class WorkerErrors {
 public:
  /// Throws Error if there is no memory.
  WorkerErrors();
  ~WorkerErrors();
  WorkerErrors(const WorkerErrors&) = delete;
  WorkerErrors& operator=(const WorkerErrors&) = delete;

  int descriptor() const { return file_; }
  /// Returns all text written so far.
  std::string text() const;

 private:
  int file_;
};

/// Returns this process's environment with `variables` ("NAME=value") added or replaced. The
/// environment is copied and not interpreted.
std::vector<std::string> environment_with(const std::vector<std::string>& variables);

/// Runs `work` on a thread that lasts as long as the process, and waits for it. The system kills a
/// worker when the thread that started it ends (PR_SET_PDEATHSIG), and not only when the process
/// does.
void on_lasting_thread(const std::function<void()>& work);

}  // namespace greta::tuner
