#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A file in memory for the standard error of a worker process, where sanitizers' reports end up.
class WorkerErrors {
 public:
  /// Throws Error where there is no memory.
  WorkerErrors();
  ~WorkerErrors();
  WorkerErrors(const WorkerErrors&) = delete;
  WorkerErrors& operator=(const WorkerErrors&) = delete;

  int descriptor() const { return file_; }
  /// All that was written so far.
  std::string text() const;

 private:
  int file_;
};

/// This process's environment, where `variables` ("NAME=value") take the place of those of the same
/// names. Nothing is made of what is in it.
std::vector<std::string> environment_with(const std::vector<std::string>& variables);

}  // namespace greta::tuner
