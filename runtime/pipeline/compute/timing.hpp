#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/pipeline/compute/prepared.hpp"

namespace greta::runtime {

/// Measures device times of operations on one stream, with events before and after each.
class OperationTimer {
 public:
  /// Record the events before and after an operation.
  Result<void> start(Device& device, Stream& stream);
  Result<void> stop(Device& device, Stream& stream, const PreparedOperation* operation);
  /// Adds the measured times to the operations' counts. The stream must be synchronised.
  Result<void> collect(Device& device);
  /// Discards times that were not collected.
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

  std::vector<std::unique_ptr<Event>> events_;  ///< reused
  std::size_t used_ = 0, start_ = 0;
  std::vector<Timed> timed_;
};

}  // namespace greta::runtime
