#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/pipeline/compute/prepared.hpp"

namespace greta::runtime {

/// Device times of operations on one stream: an event on both sides of each.
class OperationTimer {
 public:
  /// Records the event before an operation, or behind it.
  Result<void> start(Device& device, Stream& stream);
  Result<void> stop(Device& device, Stream& stream, const PreparedOperation* operation);
  /// Adds what was timed to the operations' counts; to be called when the stream is synchronised.
  Result<void> collect(Device& device);
  /// Forgets what was timed and not collected.
  void forget() {
    timed_.clear();
    used_ = 0;
  }

 private:
  struct Timed {
    const PreparedOperation* operation = nullptr;  ///< null: a copy
    std::size_t start = 0, stop = 0;
  };
  Result<std::size_t> record(Device& device, Stream& stream);

  std::vector<std::unique_ptr<Event>> events_;  ///< made once, used again
  std::size_t used_ = 0, start_ = 0;
  std::vector<Timed> timed_;
};

}  // namespace greta::runtime
